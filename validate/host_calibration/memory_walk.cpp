#include "validate/host_calibration/memory_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <numeric>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include "model/base/number.hpp"
#include "model/scenario/workload/workload_reader.hpp"
#include "validate/host_calibration/memory_kernels.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain {

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20U, small_page = 4096, line = 64;
/// 64 MiB of lines: no cache keeps more from one pass of a chase to the next.
constexpr std::size_t most_touched = std::size_t{1} << 20U;
/// A sample lasts about this long: well above the clock's resolution, well below a scheduler's time slice.
constexpr double sample_seconds = 2e-3;

std::size_t size_of(Bytes bytes) { return static_cast<std::size_t>(bytes.value()); }

/// One thread's part of a walk, ready to be repeated.
class Walker {
 public:
  explicit Walker(const MemoryWalk& walk)
      : walk_(walk), size_(size_of(walk.working_set) / at_index(walk.threads) / 1024 * 1024) {
    if (size_ < 1024) throw std::invalid_argument("a walk for each thread needs 1 KiB");
    const bool in_order = walk.pattern == WalkPattern::sequential && walk.direction == WalkDirection::forward;
    if (walk.remote || (!in_order && walk.pattern != WalkPattern::pointer_chase)) {
      throw std::invalid_argument("what is measured is chases, and whole lines in order, of this socket's memory");
    }
    if (walk.pattern == WalkPattern::pointer_chase) {
      chase_.emplace(size_, line, walk.huge_pages);
    } else {
      memory_ = host_memory(size_ + small_page, walk.huge_pages);
    }
  }

  /// Before a sample, outside of its time.
  void prepare() const {
    if (chase_) chase_->touch();
  }

  /// About `accesses` of them. Returns how many.
  std::size_t go(std::size_t accesses) {
    if (chase_) {
      chase_->chase(static_cast<std::int64_t>(accesses));
      return (accesses + 15) / 16 * 16;
    }
    const std::size_t copied = walk_.access == WalkAccess::copy ? size_ / 2 : size_;
    const std::size_t pass = copied / at_index(memory_kernels().vector_bytes), passes = (accesses + pass - 1) / pass;
    std::byte* data = memory_.get() + size_of(walk_.offset);
    if (walk_.access == WalkAccess::write) {
      memory_kernels().write(data, size_, passes);
    } else if (walk_.access == WalkAccess::copy) {
      memory_kernels().copy(data + size_ / 2, data, size_ / 2, passes);
    } else {
      memory_kernels().read(data, size_, passes);
    }
    return passes * pass;
  }

 private:
  MemoryWalk walk_;
  std::size_t size_;
  HostMemory memory_;
  std::optional<PointerChase> chase_;
};

/// All threads start together; the time of one access of the slowest. A single thread is timed by the processor time
/// that it got, several by the clock: their rates add up only as far as they ran at the same time.
double run_together(std::vector<Walker>& walkers, std::size_t accesses) {
  std::atomic<std::size_t> ready{0};
  std::vector<double> times(walkers.size());
  const auto work = [&](std::size_t i) {
    walkers[i].prepare();
    ++ready;
    while (ready.load() < walkers.size()) std::this_thread::yield();
    const auto time = walkers.size() == 1 ? thread_time : now;
    const double start = time();
    const std::size_t done = walkers[i].go(accesses);
    times[i] = (time() - start) / number(done);
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < walkers.size(); ++i) threads.emplace_back(work, i);
    work(0);
  }
  return *std::ranges::max_element(times);
}

}  // namespace

// Whole huge pages, so that even a small working set can lie in one.
HostMemory host_memory(std::size_t size, bool huge_pages) {
  const std::size_t mapped = (size + huge_page - 1) / huge_page * huge_page + huge_page;
  void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(start) % huge_page) % huge_page;
  auto* data = static_cast<std::byte*>(start) + before;
  if (before > 0) munmap(start, before);
  HostMemory memory(data, Unmap{mapped - before});
  // Advice only: a kernel without transparent huge pages goes on with small ones.
  madvise(data, mapped - before, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  for (std::size_t at = 0; at < size; at += small_page) data[at] = std::byte{1};
  return memory;
}

PointerChase::PointerChase(std::size_t working_set, std::size_t stride, bool huge_pages)
    : memory_(host_memory(working_set, huge_pages)), places_(working_set / stride), stride_(stride) {
  std::vector<std::uint32_t> order(places_);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937 random(12345);
  for (std::size_t i = places_ - 1; i > 0; --i) {
    std::swap(order[i], order[std::uniform_int_distribution<std::size_t>(0, i - 1)(random)]);
  }
  // Sattolo's permutation is one cycle: order[i] follows i.
  for (std::size_t i = 0; i < places_; ++i) {
    *reinterpret_cast<void**>(memory_.get() + i * stride) = memory_.get() + order[i] * stride;
  }
  at_ = memory_.get();
  if (places_ <= most_touched) order_ = std::move(order);
}

void PointerChase::touch() const {
  if (order_.empty()) return;
  std::size_t place = static_cast<std::size_t>(static_cast<const std::byte*>(at_) - memory_.get()) / stride_;
  for (std::size_t i = 0; i < places_; ++i) {
    __builtin_prefetch(memory_.get() + place * stride_);
    place = order_[place];
  }
}

double PointerChase::chase(std::int64_t loads) {
  constexpr int unrolled = 16;
  const double start = thread_time();
  void* at = at_;
  for (std::int64_t i = 0; i < loads; i += unrolled) {
    for (int j = 0; j < unrolled; ++j) at = *static_cast<void* volatile*>(at);
  }
  at_ = at;
  const std::int64_t done = (loads + unrolled - 1) / unrolled * unrolled;
  return (thread_time() - start) / number(done);
}

MemoryWalk walk_of(const std::map<std::string, std::string>& parameters, const Cpu& cpu) {
  std::string text = "{ ";
  for (const auto& [key, value] : parameters) text += fmt::format("{}{}: {}", text.size() > 2 ? ", " : "", key, value);
  const YamlNode kind = parse_yaml("memory_walk", "benchmark");
  const YamlNode document = parse_yaml(text + " }", "benchmark");
  return std::get<MemoryWalk>(read_host_operator(Field(kind, "kind"), Field(document, ""), cpu).work);
}

Sampled run_walk(const MemoryWalk& walk, const StoppingRule& rule) {
  std::vector<Walker> walkers;
  for (int i = 0; i < walk.threads; ++i) walkers.emplace_back(walk);
  // As many accesses as a sample lasts, after a first pass that brings the working set to where it will be.
  std::size_t accesses = 1024;
  const auto places = static_cast<std::size_t>(walk.working_set / Bytes(line));
  for (Walker& walker : walkers) walker.go(std::min<std::size_t>(2 * places, 4'000'000));
  while (run_together(walkers, accesses) * number(accesses) < sample_seconds / 2 && accesses <= 50'000'000) {
    accesses *= 2;
  }
  return sample([&] { return run_together(walkers, accesses); }, rule);
}

}  // namespace foretrain

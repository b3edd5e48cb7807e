#include "validate/host_calibration/walk_benchmark.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "model/base/number.hpp"
#include "model/cost/memory_hierarchy.hpp"
#include "model/scenario/workload/workload_reader.hpp"
#include "validate/host_calibration/memory_kernels.hpp"
#include "validate/host_calibration/pointer_chase.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain {

namespace {

constexpr std::size_t line = 64;
/// A sample lasts about this long: well above the clock's resolution, well below a scheduler's time slice.
constexpr double sample_seconds = 2e-3;

std::size_t size_of(Bytes bytes) { return static_cast<std::size_t>(bytes.value()); }

/// One thread's part of a walk, ready to be repeated.
class Walker {
 public:
  explicit Walker(const MemoryWalk& walk)
      : walk_(walk),
        size_(size_of(walk.working_set) / at_index(walk.threads) / 1024 * 1024),
        pages_(walk.huge_pages ? PageKind::huge : PageKind::small) {
    if (size_ < 1024) throw std::invalid_argument("a walk for each thread needs 1 KiB");
    const bool in_order = walk.pattern == WalkPattern::sequential && walk.direction == WalkDirection::forward;
    if (walk.remote || (!in_order && walk.pattern != WalkPattern::pointer_chase)) {
      throw std::invalid_argument("what is measured is chases, and whole lines in order, of this socket's memory");
    }
    if (walk.pattern == WalkPattern::pointer_chase) {
      chase_ = std::make_unique<PointerChase>(size_, line, pages_);
    } else {
      memory_ = std::make_unique<HostMemory>(size_ + 4096, pages_);
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
    const std::size_t pass = accesses_of_pass(), passes = (accesses + pass - 1) / pass;
    go_over(passes);
    return passes * pass;
  }

 private:
  [[nodiscard]] std::size_t accesses_of_pass() const {
    const std::size_t copied = walk_.access == WalkAccess::copy ? size_ / 2 : size_;
    return copied / at_index(memory_kernels().vector_bytes);
  }

  void go_over(std::size_t passes) {
    std::byte* data = memory_->data() + size_of(walk_.offset);
    const MemoryKernels& kernels = memory_kernels();
    if (walk_.access == WalkAccess::write) {
      kernels.write(data, size_, passes);
    } else if (walk_.access == WalkAccess::copy) {
      kernels.copy(data + size_ / 2, data, size_ / 2, passes);
    } else {
      keep(kernels.read(data, size_, passes));
    }
  }

  MemoryWalk walk_;
  std::size_t size_;
  PageKind pages_;
  std::unique_ptr<HostMemory> memory_;
  std::unique_ptr<PointerChase> chase_;
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
  return *std::max_element(times.begin(), times.end());
}

}  // namespace

MemoryWalk walk_of(const std::map<std::string, std::string>& parameters, const Cpu& cpu) {
  std::string text = "{ ";
  for (const auto& [key, value] : parameters) text += fmt::format("{}{}: {}", text.size() > 2 ? ", " : "", key, value);
  const YamlNode kind = parse_yaml("memory_walk", "benchmark");
  const YamlNode document = parse_yaml(text + " }", "benchmark");
  return std::get<MemoryWalk>(read_host_operator(Field(kind, "kind"), Field(document, ""), cpu).work);
}

Sampled run_walk(const MemoryWalk& walk, const StoppingRule& rule) {
  std::vector<Walker> walkers;
  walkers.reserve(at_index(walk.threads));
  for (int i = 0; i < walk.threads; ++i) walkers.emplace_back(walk);
  // As many accesses as a sample lasts, after a first pass that brings the working set to where it will be.
  std::size_t accesses = 1024;
  double time = 0.0;
  const auto places = static_cast<std::size_t>(walk.working_set / Bytes(line));
  for (Walker& walker : walkers) walker.go(std::min<std::size_t>(2 * places, 4'000'000));
  for (;;) {
    time = run_together(walkers, accesses) * number(accesses);
    if (time >= sample_seconds / 2 || accesses > 50'000'000) break;
    accesses *= 2;
  }
  return sample([&] { return run_together(walkers, accesses); }, rule);
}

std::optional<double> predict_walk(const BenchmarkRow& row, const Node& node) {
  if (!node.cpu.hierarchy) return std::nullopt;
  const WalkCost cost = memory_walk_cost(walk_of(row.parameters, node.cpu), node.cpu);
  return row.unit == "B/s" ? (cost.bytes / cost.time).value() : cost.per_access.value();
}

}  // namespace foretrain

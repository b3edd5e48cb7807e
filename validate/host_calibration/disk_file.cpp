#include "validate/host_calibration/disk_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "validate/host_calibration/memory_walk.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

constexpr std::size_t piece = 1U << 20U;

void require_room(const std::string& folder, Bytes size) {
  struct statvfs room {};
  if (statvfs(folder.c_str(), &room) != 0) throw_system_error(folder);
  const Bytes available(number(room.f_bavail) * number(room.f_frsize));
  if (available < 2.0 * size) {
    throw std::runtime_error(fmt::format("{} has {} free; measuring there needs {}", folder, format_bytes(available),
                                         format_bytes(2.0 * size)));
  }
}

void write_noise(int file, std::size_t size) {
  std::vector<std::uint64_t> words(piece / sizeof(std::uint64_t));
  std::uint64_t state = 1;
  for (std::size_t written = 0; written < size; written += piece) {
    throw_if_interrupted();
    for (std::uint64_t& word : words) word = split_mix(state);
    if (write(file, words.data(), piece) != static_cast<ssize_t>(piece)) {
      throw_system_error("writing the file to measure with");
    }
  }
  fsync(file);
}

class Requests {
 public:
  Requests(const DiskFile& file, const DiskPattern& pattern, Seconds duration)
      : file_(pattern.direct ? file.raw() : file.cached()),
        blocks_(file.size() / static_cast<std::size_t>(pattern.block.value())),
        block_(static_cast<std::size_t>(pattern.block.value())),
        pattern_(pattern),
        end_(now() + duration.value()) {}

  /// One thread's requests until the time is up.
  void run(std::size_t thread, std::size_t threads) {
    const HostMemory buffer = host_memory(block_, false);  // direct requests need whole pages
    std::fill_n(buffer.get(), block_, static_cast<std::byte>(thread + 1));
    std::uint64_t state = thread + 1;
    const std::size_t part = std::max<std::size_t>(1, blocks_ / threads);
    // In order through the page cache each byte is read once: a second pass would find all of it there.
    const bool once = !pattern_.direct && pattern_.order == AccessOrder::sequential;
    for (std::size_t i = 0; error_ == 0 && now() < end_ && !(once && i == part); ++i) {
      const std::size_t place =
          pattern_.order == AccessOrder::random ? split_mix(state) % blocks_ : (thread * part + i % part) % blocks_;
      const auto offset = static_cast<off_t>(place * block_);
      const ssize_t moved =
          pattern_.write ? pwrite(file_, buffer.get(), block_, offset) : pread(file_, buffer.get(), block_, offset);
      if (moved != static_cast<ssize_t>(block_) && errno != EINTR) error_ = errno == 0 ? EIO : errno;
      ++done_;
    }
  }

  [[nodiscard]] std::size_t done() const { return done_; }
  void throw_if_failed() const {
    if (error_ != 0) throw_system_error("a request to the disk", error_);
  }

 private:
  int file_;
  std::size_t blocks_, block_;
  const DiskPattern& pattern_;
  double end_;
  std::atomic<std::size_t> done_{0};
  std::atomic<int> error_{0};
};

}  // namespace

DiskFile::DiskFile(const std::string& folder, Bytes size)
    : size_((static_cast<std::size_t>(size.value()) + piece - 1) / piece * piece) {
  require_room(folder, size);
  std::string name = folder + "/foretrain-disk-XXXXXX";
  cached_ = Descriptor(mkostemp(name.data(), O_CLOEXEC));
  if (!cached_.open()) throw_system_error(folder);
  direct_ = Descriptor(open(name.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
  unlink(name.c_str());
  write_noise(cached(), size_);
}

void DiskFile::drop_cache() const { posix_fadvise(cached(), 0, 0, POSIX_FADV_DONTNEED); }

Bytes DiskFile::read_ahead() const {
  struct stat status {};
  double kib = 0.0;
  if (fstat(cached(), &status) == 0) {
    const std::string device = fmt::format("/sys/dev/block/{}:{}", major(status.st_dev), minor(status.st_dev));
    for (const char* place : {"/queue/read_ahead_kb", "/../queue/read_ahead_kb"}) {
      std::ifstream file(device + place);
      if (file >> kib && kib > 0.0) return Bytes(kib * 1024.0);
    }
  }
  return Bytes(131072.0);
}

BytesPerSecond measure_access(const DiskFile& file, const DiskPattern& pattern, Seconds duration) {
  if (!pattern.direct) file.drop_cache();
  Requests requests(file, pattern, duration);
  const double start = now();
  const auto depth = static_cast<std::size_t>(std::max(1.0, pattern.queue_depth));
  {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < depth; ++t) others.emplace_back([&, t] { requests.run(t, depth); });
    requests.run(0, depth);
  }
  requests.throw_if_failed();
  return pattern.block * number(requests.done()) / Seconds(now() - start);
}

Seconds measure_cached_read(const DiskFile& file, Bytes block) {
  const auto size = static_cast<std::size_t>(block.value());
  const HostMemory buffer = host_memory(size, false);
  const std::size_t blocks = std::min<std::size_t>(file.size(), 32U << 20U) / size;
  const auto walk = [&] {
    for (std::size_t i = 0; i < blocks; ++i) {
      if (pread(file.cached(), buffer.get(), size, static_cast<off_t>(i * size)) != static_cast<ssize_t>(size)) {
        throw_system_error("reading what is cached");
      }
    }
  };
  walk();  // from here on it is there
  const double start = now();
  walk();
  return Seconds((now() - start) / number(blocks));
}

Seconds measure_fault(const DiskFile& file) {
  constexpr std::size_t page = 4096;
  measure_cached_read(file, Bytes(65536.0));
  const std::size_t size = std::min<std::size_t>(file.size(), 32U << 20U);
  void* mapping = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.cached(), 0);
  if (mapping == MAP_FAILED) throw_system_error("mapping the file");
  const auto* bytes = static_cast<const volatile char*>(mapping);
  struct rusage before {
  }, after{};
  getrusage(RUSAGE_SELF, &before);
  const double start = now();
  for (std::size_t at = 0; at < size; at += page) (void)bytes[at];
  const double time = now() - start;
  getrusage(RUSAGE_SELF, &after);
  munmap(mapping, size);
  const long faults = after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt;
  return Seconds(time / number(std::max(1L, faults)));
}

}  // namespace foretrain

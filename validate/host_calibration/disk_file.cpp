#include "validate/host_calibration/disk_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
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
  if (!pattern.direct) posix_fadvise(file.cached(), 0, 0, POSIX_FADV_DONTNEED);
  const auto block = static_cast<std::size_t>(pattern.block.value()), blocks = file.size() / block;
  const auto depth = static_cast<std::size_t>(std::max(1.0, pattern.queue_depth));
  const std::size_t part = std::max<std::size_t>(1, blocks / depth);
  const bool random = pattern.order == AccessOrder::random;
  // In order through the page cache each byte is read once: a second pass would find all of it there.
  const bool once = !pattern.direct && !random;
  std::atomic<std::size_t> done{0};
  std::atomic<int> error{0};
  const double start = now(), end = start + duration.value();
  const auto run = [&](std::size_t thread) {
    const HostMemory buffer = host_memory(block, false);  // direct requests need whole pages
    std::fill_n(buffer.get(), block, static_cast<std::byte>(thread + 1));
    std::uint64_t state = thread + 1;
    for (std::size_t i = 0; error == 0 && (i == 0 || now() < end) && !(once && i == part); ++i) {
      const std::size_t place = random ? split_mix(state) % blocks : (thread * part + i % part) % blocks;
      const auto offset = static_cast<off_t>(place * block);
      const int to = pattern.direct ? file.raw() : file.cached();
      const ssize_t moved =
          pattern.write ? pwrite(to, buffer.get(), block, offset) : pread(to, buffer.get(), block, offset);
      if (moved != static_cast<ssize_t>(block) && errno != EINTR) error = errno == 0 ? EIO : errno;
      ++done;
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t thread = 1; thread < depth; ++thread) others.emplace_back(run, thread);
    run(0);
  }
  if (error != 0) throw_system_error("a request to the disk", error);
  return pattern.block * number(done.load()) / Seconds(now() - start);
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

}  // namespace foretrain

#include "validate/host_calibration/disk_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>
#include <vector>

#include "model/base/format.hpp"
#include "model/base/hash.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

constexpr std::size_t piece = 1U << 20U;

void require_room(const std::string& folder, Bytes size) {
  struct statvfs room {};
  if (statvfs(folder.c_str(), &room) != 0) throw std::system_error(errno, std::generic_category(), folder);
  const Bytes available(static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize));
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
      throw std::system_error(errno, std::generic_category(), "writing the file to measure with");
    }
  }
  fsync(file);
}

}  // namespace

DiskFile::DiskFile(const std::string& folder, Bytes size)
    : size_((static_cast<std::size_t>(size.value()) + piece - 1) / piece * piece) {
  require_room(folder, size);
  std::string name = folder + "/foretrain-disk-XXXXXX";
  cached_ = mkostemp(name.data(), O_CLOEXEC);
  if (cached_ < 0) throw std::system_error(errno, std::generic_category(), folder);
  direct_ = open(name.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  unlink(name.c_str());
  try {
    write_noise(cached_, size_);
  } catch (...) {
    close(cached_);
    if (direct_ >= 0) close(direct_);
    throw;
  }
}

DiskFile::~DiskFile() {
  close(cached_);
  if (direct_ >= 0) close(direct_);
}

void DiskFile::drop_cache() const { posix_fadvise(cached_, 0, 0, POSIX_FADV_DONTNEED); }

Bytes DiskFile::read_ahead() const {
  struct stat status {};
  double kib = 0.0;
  if (fstat(cached_, &status) == 0) {
    const std::string device = fmt::format("/sys/dev/block/{}:{}", major(status.st_dev), minor(status.st_dev));
    for (const char* place : {"/queue/read_ahead_kb", "/../queue/read_ahead_kb"}) {
      std::ifstream file(device + place);
      if (file >> kib && kib > 0.0) return Bytes(kib * 1024.0);
    }
  }
  return Bytes(131072.0);
}

}  // namespace foretrain

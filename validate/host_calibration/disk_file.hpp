// A file to measure a disk with: written, and gone from the folder before the first measurement, so that nothing can
// leave it behind.
#pragma once

#include <cstddef>
#include <string>

#include "model/base/quantity.hpp"

namespace foretrain {

class DiskFile {
 public:
  /// `size` bytes that do not compress, in `folder`. Throws std::system_error when the folder cannot be written, and
  /// std::runtime_error when less than twice the size is free, saying how much is.
  DiskFile(const std::string& folder, Bytes size);
  ~DiskFile();
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  [[nodiscard]] std::size_t size() const { return size_; }
  /// Reads and writes pass the page cache.
  [[nodiscard]] bool direct() const { return direct_ >= 0; }
  /// Past the page cache where the file system lets it, else the same as cached().
  [[nodiscard]] int raw() const { return direct_ >= 0 ? direct_ : cached_; }
  [[nodiscard]] int cached() const { return cached_; }
  /// Asks the kernel to forget what it holds of the file.
  void drop_cache() const;
  /// How far the kernel reads ahead on the file's disk; 128 KiB where it does not say.
  [[nodiscard]] Bytes read_ahead() const;

 private:
  std::size_t size_ = 0;
  int cached_ = -1;
  int direct_ = -1;
};

}  // namespace foretrain

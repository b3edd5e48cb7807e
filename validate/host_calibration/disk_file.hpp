// A file to measure a disk with, and requests to it. It is written, and gone from the folder before the first
// measurement, so that nothing can leave it behind.
#pragma once

#include <cstddef>
#include <string>

#include "model/base/descriptor.hpp"
#include "model/base/quantity.hpp"
#include "model/cost/storage.hpp"

namespace foretrain {

class DiskFile {
 public:
  /// `size` bytes that do not compress, in `folder`. Throws std::system_error when the folder cannot be written, and
  /// std::runtime_error when less than twice the size is free, saying how much is.
  DiskFile(const std::string& folder, Bytes size);
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Reads and writes pass the page cache.
  [[nodiscard]] bool direct() const { return direct_.open(); }
  /// Past the page cache where the file system lets it, else the same as cached().
  [[nodiscard]] int raw() const { return direct() ? direct_.number() : cached(); }
  [[nodiscard]] int cached() const { return cached_.number(); }
  /// Read-ahead of the kernel on the file's disk; 128 KiB if unknown.
  [[nodiscard]] Bytes read_ahead() const;

 private:
  std::size_t size_ = 0;
  Descriptor cached_, direct_;
};

/// Bytes per second that `pattern.queue_depth` threads together read or write in about `duration`, each with one
/// request in flight. Random requests hit multiples of the block anywhere in the file; sequential ones each thread's
/// part of it from front to back. Direct patterns use DiskFile::raw(), others go through the page cache, which is
/// dropped before, and in order only once over the file. Throws std::system_error when a request fails.
BytesPerSecond measure_access(const DiskFile& file, const DiskPattern& pattern, Seconds duration);

/// Time of one read of `block` bytes that are in the page cache, walking over the file.
Seconds measure_cached_read(const DiskFile& file, Bytes block);

}  // namespace foretrain

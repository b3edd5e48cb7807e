// Requests to a file, many at once: each thread has one in flight.
#pragma once

#include "model/cost/storage.hpp"
#include "validate/host_calibration/disk_file.hpp"

namespace foretrain {

/// Bytes per second that `pattern.queue_depth` threads together read or write in about `duration`. Random requests hit
/// multiples of the block anywhere in the file; sequential ones each thread's part of it from front to back. Direct
/// patterns use DiskFile::raw(), others go through the page cache, which is dropped before, and in order only once over
/// the file. Throws std::system_error when a request fails.
BytesPerSecond measure_access(const DiskFile& file, const DiskPattern& pattern, Seconds duration);

/// Time of one read of `block` bytes that are in the page cache, and of one fault of a mapping that maps what is in the
/// page cache, walking over the file.
Seconds measure_cached_read(const DiskFile& file, Bytes block);
Seconds measure_fault(const DiskFile& file);

}  // namespace foretrain

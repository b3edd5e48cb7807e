// A walk in which every load's address is the value of the load before it: nothing overlaps, so its time over its loads
// is the latency of the level of the memory hierarchy that holds the working set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/base/quantity.hpp"
#include "validate/host_calibration/host_memory.hpp"

namespace foretrain {

/// One random cycle through all lines of a working set (Sattolo's algorithm, fixed seed).
class PointerChase {
 public:
  /// `stride` bytes lie between the places visited, a multiple of 8. Throws std::bad_alloc.
  PointerChase(std::size_t working_set, std::size_t stride, PageKind pages);

  /// Follows `loads` pointers from where the walk last stood. Returns the thread's time for one load, in seconds.
  double chase(std::int64_t loads);
  /// Of up to a million places: asks for all in the order of the walk without waiting for any, so that the next loads
  /// find what a pass just before them leaves in the caches. At the walk's own pace, other virtual machines might
  /// displace it first.
  void touch() const;
  [[nodiscard]] std::size_t places() const { return places_; }

 private:
  HostMemory memory_;
  std::size_t places_, stride_;
  std::vector<std::uint32_t> order_;  ///< which place follows; empty for very large sets
  void* at_ = nullptr;
};

}  // namespace foretrain

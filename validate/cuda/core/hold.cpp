#include "validate/cuda/core/hold.hpp"

#include <algorithm>
#include <cstdint>

#include "validate/cuda/core/idle.hpp"

namespace foretrain::gpu {

void keep_busy(Seconds duration, cudaStream_t stream) {
  const double cycles = std::min(duration.value(), longest_hold_s) * 1e3 * device_attribute(cudaDevAttrClockRate);
  launch_spin(static_cast<std::int64_t>(cycles), stream);
}

}  // namespace foretrain::gpu

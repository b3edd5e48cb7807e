// A stream that is held until what is to be timed has been handed over.
#pragma once

#include "model/base/quantity.hpp"
#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

inline constexpr double longest_hold_s = 20e-3;

/// Puts a kernel on the stream that does nothing for this long (longest_hold_s at most): what is put behind it
/// meanwhile is there when its turn comes.
void keep_busy(Seconds duration, cudaStream_t stream);

}  // namespace foretrain::gpu

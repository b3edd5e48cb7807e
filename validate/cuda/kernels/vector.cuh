// Threads for an array.
#pragma once

#include <cstdint>

#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

inline constexpr unsigned block_size = 256;

__device__ inline std::int64_t global_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t all_threads() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

/// Blocks of `block_size` threads for so many units of work, at least one and no more than a grid has.
inline unsigned blocks_for(std::int64_t units) {
  const std::int64_t blocks = (units + block_size - 1) / block_size;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks < 2147483647 ? blocks : 2147483647);
}

}  // namespace foretrain::gpu

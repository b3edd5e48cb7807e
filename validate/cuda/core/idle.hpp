// Kernels that do nothing, or nothing for a while.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace foretrain::gpu {

/// One block of one warp that returns at once.
void launch_empty(cudaStream_t stream);
/// One block of one warp that waits for this many cycles of its multiprocessor.
void launch_spin(std::int64_t cycles, cudaStream_t stream);

}  // namespace foretrain::gpu

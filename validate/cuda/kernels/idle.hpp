// Kernels that do nothing, or nothing for a while.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace foretrain::gpu {

/// Returns at once.
void launch_empty(unsigned blocks, cudaStream_t stream);
/// Returns at once; its arguments take `bytes` (64, 1024 or 4000).
void launch_empty_with_arguments(int bytes, cudaStream_t stream);
/// One block of one warp that waits for this many cycles of its multiprocessor.
void launch_spin(std::int64_t cycles, cudaStream_t stream);

}  // namespace foretrain::gpu

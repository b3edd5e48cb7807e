// Fills the memory of GPUs with the known contents of pattern.hpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace foretrain::gpu {

/// data[i] = contribution(rank, i) for `count` elements of the current device's memory, in stream order.
void fill_contribution(float* data, std::size_t count, int rank, cudaStream_t stream);

}  // namespace foretrain::gpu

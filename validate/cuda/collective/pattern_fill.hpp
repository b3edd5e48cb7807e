// Fills the memory of GPUs with the known contents of pattern.hpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "validate/cuda/collective/gradient_type.hpp"

namespace foretrain::gpu {

/// data[i] = contribution(rank, i) for `count` elements of the current device's memory, in stream order.
void fill_contribution(float* data, std::size_t count, int rank, cudaStream_t stream);

/// data[i] = coarse_contribution(rank, i), of any type.
void fill_coarse_contribution(GradientType type, void* data, std::size_t count, int rank, cudaStream_t stream);

}  // namespace foretrain::gpu

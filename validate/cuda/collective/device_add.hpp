// Sums on a GPU, for the parameter server in its memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

namespace foretrain::gpu {

/// Most buffers that one call adds up.
constexpr std::size_t most_addends = 32;

/// sum[i] = inputs[0][i] + inputs[1][i] + …, in this order, on the stream of the current device. Throws
/// std::invalid_argument for no inputs or more than most_addends.
void add_on_device(float* sum, std::span<const float* const> inputs, std::size_t elements, cudaStream_t stream);

}  // namespace foretrain::gpu

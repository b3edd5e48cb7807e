#include "validate/cuda/collective/pattern.hpp"
#include "validate/cuda/collective/pattern_fill.hpp"
#include "validate/cuda/kernels/vector.cuh"

namespace foretrain::gpu {

namespace {

__global__ void contribution_kernel(float* data, std::size_t count, int rank) {
  for (std::size_t i = global_thread(); i < count; i += all_threads()) data[i] = contribution(rank, i);
}

}  // namespace

void fill_contribution(float* data, std::size_t count, int rank, cudaStream_t stream) {
  if (count == 0) return;
  contribution_kernel<<<blocks_for(static_cast<std::int64_t>(count), 16384), block_size, 0, stream>>>(data, count,
                                                                                                      rank);
  GPU_CHECK(cudaGetLastError());
}

}  // namespace foretrain::gpu

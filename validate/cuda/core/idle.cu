#include "validate/cuda/core/error.hpp"
#include "validate/cuda/core/timing.hpp"

namespace foretrain::gpu {

namespace {

__global__ void empty_kernel() {}

__global__ void spin_kernel(std::int64_t cycles) {
  const std::int64_t start = clock64();
  while (clock64() - start < cycles) {
  }
}

}  // namespace

void launch_empty(cudaStream_t stream) {
  empty_kernel<<<1, 32, 0, stream>>>();
  GPU_CHECK(cudaGetLastError());
}

void launch_spin(std::int64_t cycles, cudaStream_t stream) {
  spin_kernel<<<1, 32, 0, stream>>>(cycles);
  GPU_CHECK(cudaGetLastError());
}

}  // namespace foretrain::gpu

#include "validate/cuda/core/error.hpp"
#include "validate/cuda/kernels/idle.hpp"

namespace foretrain::gpu {

namespace {

template <int N>
struct Bytes {
  char data[N];
};

__global__ void empty_kernel() {}

template <int N>
__global__ void empty_kernel_with(Bytes<N> /*arguments*/) {}

__global__ void spin_kernel(std::int64_t cycles) {
  const std::int64_t start = clock64();
  while (clock64() - start < cycles) {
  }
}

template <int N>
void launch_empty_with(cudaStream_t stream) {
  const Bytes<N> arguments{};
  empty_kernel_with<N><<<1, 32, 0, stream>>>(arguments);
}

}  // namespace

void launch_empty(unsigned blocks, cudaStream_t stream) {
  empty_kernel<<<blocks, 32, 0, stream>>>();
  GPU_CHECK(cudaGetLastError());
}

void launch_empty_with_arguments(int bytes, cudaStream_t stream) {
  if (bytes <= 64) {
    launch_empty_with<64>(stream);
  } else if (bytes <= 1024) {
    launch_empty_with<1024>(stream);
  } else {
    launch_empty_with<4000>(stream);
  }
  GPU_CHECK(cudaGetLastError());
}

void launch_spin(std::int64_t cycles, cudaStream_t stream) {
  spin_kernel<<<1, 32, 0, stream>>>(cycles);
  GPU_CHECK(cudaGetLastError());
}

}  // namespace foretrain::gpu

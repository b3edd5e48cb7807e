#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "validate/cuda/collective/pattern.hpp"
#include "validate/cuda/collective/pattern_fill.hpp"
#include "validate/cuda/core/error.hpp"

namespace foretrain::gpu {

namespace {

template <float (*Value)(int, std::uint64_t), typename T>
__global__ void fill_kernel(T* data, std::size_t count, int rank) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    data[i] = static_cast<T>(Value(rank, i));
  }
}

template <float (*Value)(int, std::uint64_t), typename T>
void launch_fill(T* data, std::size_t count, int rank, cudaStream_t stream) {
  if (count == 0) return;
  const std::size_t blocks = (count + 255) / 256;
  fill_kernel<Value, T><<<static_cast<unsigned>(blocks < 16384 ? blocks : 16384), 256, 0, stream>>>(data, count, rank);
  GPU_CHECK(cudaGetLastError());
}

}  // namespace

void fill_contribution(float* data, std::size_t count, int rank, cudaStream_t stream) {
  launch_fill<contribution>(data, count, rank, stream);
}

void fill_coarse_contribution(GradientType type, void* data, std::size_t count, int rank, cudaStream_t stream) {
  switch (type) {
    case GradientType::fp32:
      return launch_fill<coarse_contribution>(static_cast<float*>(data), count, rank, stream);
    case GradientType::fp16:
      return launch_fill<coarse_contribution>(static_cast<__half*>(data), count, rank, stream);
    case GradientType::bf16:
      return launch_fill<coarse_contribution>(static_cast<__nv_bfloat16*>(data), count, rank, stream);
  }
}

}  // namespace foretrain::gpu

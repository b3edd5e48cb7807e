#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

namespace {

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) of the element's number: no state, the same on every GPU.
__device__ std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15ULL + (index + 1) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

__device__ float uniform(std::uint64_t bits) {
  return static_cast<float>(static_cast<std::uint32_t>(bits >> 40)) * (2.0F / 16777215.0F) - 1.0F;
}

template <typename T>
__device__ T converted(std::uint64_t bits);
template <>
__device__ double converted<double>(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * (2.0 / 9007199254740991.0) - 1.0;
}
template <>
__device__ float converted<float>(std::uint64_t bits) {
  return uniform(bits);
}
template <>
__device__ __half converted<__half>(std::uint64_t bits) {
  return __float2half(uniform(bits));
}
template <>
__device__ __nv_bfloat16 converted<__nv_bfloat16>(std::uint64_t bits) {
  return __float2bfloat16(uniform(bits));
}
template <>
__device__ __nv_fp8_e4m3 converted<__nv_fp8_e4m3>(std::uint64_t bits) {
  return __nv_fp8_e4m3(uniform(bits));
}
template <>
__device__ std::uint8_t converted<std::uint8_t>(std::uint64_t bits) {
  return static_cast<std::uint8_t>(bits >> 32);
}

template <typename T>
__global__ void fill_kernel(T* data, std::size_t count, std::uint64_t seed) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    data[i] = converted<T>(random_bits(seed, i));
  }
}

template <typename T>
void launch_fill(const DeviceBuffer& buffer, cudaStream_t stream, std::uint64_t seed) {
  const std::size_t count = buffer.size() / sizeof(T);
  if (count == 0) return;
  const std::size_t blocks = (count + 255) / 256;
  fill_kernel<T>
      <<<static_cast<unsigned>(blocks < 16384 ? blocks : 16384), 256, 0, stream>>>(buffer.as<T>(), count, seed);
  GPU_CHECK(cudaGetLastError());
}

}  // namespace

void DeviceBuffer::fill(Fill format, cudaStream_t stream, std::uint64_t seed) const {
  switch (format) {
    case Fill::uniform_fp64:
      return launch_fill<double>(*this, stream, seed);
    case Fill::uniform_fp32:
      return launch_fill<float>(*this, stream, seed);
    case Fill::uniform_fp16:
      return launch_fill<__half>(*this, stream, seed);
    case Fill::uniform_bf16:
      return launch_fill<__nv_bfloat16>(*this, stream, seed);
    case Fill::uniform_fp8:
      return launch_fill<__nv_fp8_e4m3>(*this, stream, seed);
    case Fill::uniform_int8:
    case Fill::bytes:
      return launch_fill<std::uint8_t>(*this, stream, seed);
  }
}

}  // namespace foretrain::gpu

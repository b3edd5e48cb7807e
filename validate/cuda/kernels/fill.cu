#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <type_traits>

#include "validate/cuda/kernels/vector.cuh"

namespace foretrain::gpu {

namespace {

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
__device__ std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// A random number of the element's place: no state, the same on every GPU.
template <typename T>
__device__ T random_number(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t bits = mixed(seed * 0x9e3779b97f4a7c15ULL + (index + 1) * 0xbf58476d1ce4e5b9ULL);
  if constexpr (std::is_same_v<T, double>) return static_cast<double>(bits >> 11) * (2.0 / 9007199254740991.0) - 1.0;
  if constexpr (std::is_integral_v<T>) return static_cast<T>(bits >> 32);
  return static_cast<T>(static_cast<float>(static_cast<std::uint32_t>(bits >> 40)) * (2.0F / 16777215.0F) - 1.0F);
}

template <typename T>
__global__ void fill_kernel(T* data, std::size_t count, std::uint64_t seed) {
  for (std::size_t i = global_thread(); i < count; i += all_threads()) data[i] = random_number<T>(seed, i);
}

template <typename T>
void fill_by(const DeviceBuffer& buffer, cudaStream_t stream, std::uint64_t seed) {
  const std::size_t count = buffer.size() / sizeof(T);
  if (count == 0) return;
  const unsigned blocks = std::min(blocks_for(static_cast<std::int64_t>(count)), 16384U);
  fill_kernel<<<blocks, block_size, 0, stream>>>(buffer.as<T>(), count, seed);
  GPU_CHECK(cudaGetLastError());
}

}  // namespace

void DeviceBuffer::fill(Format format, cudaStream_t stream, std::uint64_t seed) const {
  switch (format) {
    case Format::fp64:
      return fill_by<double>(*this, stream, seed);
    case Format::fp32:
      return fill_by<float>(*this, stream, seed);
    case Format::fp16:
      return fill_by<__half>(*this, stream, seed);
    case Format::bf16:
      return fill_by<__nv_bfloat16>(*this, stream, seed);
    case Format::fp8:
      return fill_by<__nv_fp8_e4m3>(*this, stream, seed);
    case Format::int8:
    case Format::int32:
      return fill_by<std::int8_t>(*this, stream, seed);
  }
}

}  // namespace foretrain::gpu

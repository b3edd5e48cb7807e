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

}  // namespace

void DeviceBuffer::fill(Format format, cudaStream_t stream, std::uint64_t seed) const {
  if (format == Format::int32 || format == Format::int64) format = Format::int8;
  with_any_type(format, [&]<typename T>() {
    const std::size_t count = size() / sizeof(T);
    if (count == 0) return;
    fill_kernel<T>
        <<<blocks_for(static_cast<std::int64_t>(count), 16384), block_size, 0, stream>>>(as<T>(), count, seed);
    GPU_CHECK(cudaGetLastError());
  });
}

}  // namespace foretrain::gpu

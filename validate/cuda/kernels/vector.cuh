// Sixteen bytes of numbers at once, in the precisions of training, with arithmetic in fp32.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "validate/cuda/math/format.hpp"

namespace foretrain::gpu {

inline constexpr unsigned block_size = 256;

template <typename T>
__device__ float to_float(T x) {
  return static_cast<float>(x);
}
template <typename T>
__device__ T from_float(float x) {
  return static_cast<T>(x);
}

/// `width` consecutive numbers, loaded and stored as one access of up to 16 bytes.
template <typename T, int width>
struct alignas(sizeof(T) * width) Pack {
  T value[width];
};
/// How many fill 16 bytes.
template <typename T>
inline constexpr int full_width = 16 / static_cast<int>(sizeof(T));

template <typename T, int width>
__device__ Pack<T, width> load(const T* from) {
  return *reinterpret_cast<const Pack<T, width>*>(from);
}
template <typename T, int width>
__device__ void store(T* to, const Pack<T, width>& pack) {
  *reinterpret_cast<Pack<T, width>*>(to) = pack;
}

__device__ inline std::int64_t global_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t all_threads() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
  static constexpr float neutral = 0.0F;
};
struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
  static constexpr float neutral = -3.4e38F;
};

/// The same result in every thread of the block. All threads of the block must call it; blocks are whole warps.
template <typename Combine>
__device__ float over_block(float x, Combine combine) {
  __shared__ float of_warp[32];
  for (int distance = 16; distance > 0; distance /= 2) x = combine(x, __shfl_xor_sync(0xffffffffU, x, distance));
  const unsigned warps = blockDim.x / 32;
  if (warps == 1) return x;
  __syncthreads();  // of_warp may still be read from the call before
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  x = threadIdx.x % 32 < warps ? of_warp[threadIdx.x % 32] : Combine::neutral;
  for (int distance = 16; distance > 0; distance /= 2) x = combine(x, __shfl_xor_sync(0xffffffffU, x, distance));
  return x;
}

/// Blocks of `block_size` threads for so many units of work, at least one and no more than a grid has.
inline unsigned blocks_for(std::int64_t units, std::int64_t most = 2147483647) {
  const std::int64_t blocks = (units + block_size - 1) / block_size;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/// Threads for a row of so many units: whole warps, at most 1024.
inline unsigned threads_for_row(std::int64_t units) {
  const std::int64_t warps = (units + 31) / 32;
  return static_cast<unsigned>(32 * (warps < 1 ? 1 : warps < 32 ? warps : 32));
}

/// Calls `work` with the type that the format stores, as its template argument. Throws GpuError with
/// Fault::unsupported.
template <typename Work>
void with_type(Format format, Work work) {
  if (format == Format::fp32) return work.template operator()<float>();
  if (format == Format::fp16) return work.template operator()<__half>();
  if (format == Format::bf16) return work.template operator()<__nv_bfloat16>();
  throw GpuError(Fault::unsupported, "own kernels exist for fp32, tf32, fp16 and bf16");
}
/// The same for every format.
template <typename Work>
void with_any_type(Format format, Work work) {
  if (format == Format::fp64) return work.template operator()<double>();
  if (format == Format::fp8) return work.template operator()<__nv_fp8_e4m3>();
  if (format == Format::int8) return work.template operator()<std::int8_t>();
  if (format == Format::int32) return work.template operator()<std::int32_t>();
  if (format == Format::int64) return work.template operator()<std::int64_t>();
  with_type(format, work);
}

}  // namespace foretrain::gpu

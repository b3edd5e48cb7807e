// What kernels share: threads for an array, types of number formats.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <type_traits>

#include "validate/cuda/math/format.hpp"

namespace foretrain::gpu {

inline constexpr unsigned block_size = 256;

__device__ inline std::int64_t global_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t all_threads() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

/// Blocks of `block_size` threads for so many units of work, at least one and no more than a grid has.
inline unsigned blocks_for(std::int64_t units, std::int64_t most = 2147483647) {
  const std::int64_t blocks = (units + block_size - 1) / block_size;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/// Calls `work` with the type that the format stores, as its template argument.
template <typename Work>
void with_any_type(Format format, Work work) {
  switch (format) {
    case Format::fp64:
      return work.template operator()<double>();
    case Format::fp32:
      return work.template operator()<float>();
    case Format::fp16:
      return work.template operator()<__half>();
    case Format::bf16:
      return work.template operator()<__nv_bfloat16>();
    case Format::fp8:
      return work.template operator()<__nv_fp8_e4m3>();
    case Format::int8:
      return work.template operator()<std::int8_t>();
    case Format::int32:
      return work.template operator()<std::int32_t>();
    case Format::int64:
      return work.template operator()<std::int64_t>();
  }
}

}  // namespace foretrain::gpu

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "validate/cuda/math/probe.hpp"

namespace foretrain::gpu {

namespace {

__device__ double widened(double x) { return x; }
__device__ double widened(float x) { return x; }
__device__ double widened(__half x) { return __half2float(x); }
__device__ double widened(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ double widened(__nv_fp8_e4m3 x) { return static_cast<float>(x); }
__device__ double widened(std::int8_t x) { return x; }
__device__ double widened(std::int32_t x) { return x; }
__device__ double widened(std::int64_t x) { return static_cast<double>(x); }

template <typename T>
__global__ void read_kernel(const T* array, std::int64_t offset, std::int64_t stride, std::int64_t count, double* out) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    out[i] = widened(array[offset + i * stride]);
  }
}

template <typename T>
void launch(const void* array, std::int64_t offset, std::int64_t stride, std::int64_t count, double* out,
            cudaStream_t stream) {
  const std::int64_t blocks = (count + 255) / 256;
  read_kernel<T><<<static_cast<unsigned>(blocks < 1024 ? blocks : 1024), 256, 0, stream>>>(static_cast<const T*>(array),
                                                                                           offset, stride, count, out);
  GPU_CHECK(cudaGetLastError());
}

}  // namespace

std::vector<double> read_elements(Format format, const void* array, std::int64_t offset, std::int64_t stride,
                                  std::int64_t count, cudaStream_t stream) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(double);
  const DeviceBuffer wide(bytes);
  auto* const out = wide.as<double>();
  std::vector<double> values(static_cast<std::size_t>(count));
  if (count == 0) return values;
  switch (format) {
    case Format::fp64:
      launch<double>(array, offset, stride, count, out, stream);
      break;
    case Format::fp32:
      launch<float>(array, offset, stride, count, out, stream);
      break;
    case Format::fp16:
      launch<__half>(array, offset, stride, count, out, stream);
      break;
    case Format::bf16:
      launch<__nv_bfloat16>(array, offset, stride, count, out, stream);
      break;
    case Format::fp8:
      launch<__nv_fp8_e4m3>(array, offset, stride, count, out, stream);
      break;
    case Format::int8:
      launch<std::int8_t>(array, offset, stride, count, out, stream);
      break;
    case Format::int32:
      launch<std::int32_t>(array, offset, stride, count, out, stream);
      break;
    case Format::int64:
      launch<std::int64_t>(array, offset, stride, count, out, stream);
      break;
  }
  GPU_CHECK(cudaMemcpyAsync(values.data(), out, bytes, cudaMemcpyDeviceToHost, stream));
  GPU_CHECK(cudaStreamSynchronize(stream));
  return values;
}

}  // namespace foretrain::gpu

#include "validate/cuda/kernels/vector.cuh"
#include "validate/cuda/math/probe.hpp"

namespace foretrain::gpu {

namespace {

template <typename T>
__global__ void read_kernel(const T* array, std::int64_t offset, std::int64_t stride, std::int64_t count, double* out) {
  for (std::int64_t i = global_thread(); i < count; i += all_threads()) {
    const T element = array[offset + i * stride];
    if constexpr (std::is_arithmetic_v<T>) {
      out[i] = static_cast<double>(element);
    } else {
      out[i] = static_cast<float>(element);
    }
  }
}

}  // namespace

std::vector<double> read_elements(Format format, const void* array, std::int64_t offset, std::int64_t stride,
                                  std::int64_t count, cudaStream_t stream) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(double);
  const DeviceBuffer wide(bytes);
  std::vector<double> values(static_cast<std::size_t>(count));
  if (count == 0) return values;
  with_any_type(format, [&]<typename T>() {
    read_kernel<T><<<blocks_for(count, 1024), block_size, 0, stream>>>(static_cast<const T*>(array), offset, stride,
                                                                       count, wide.as<double>());
    GPU_CHECK(cudaGetLastError());
  });
  GPU_CHECK(cudaMemcpyAsync(values.data(), wide.data(), bytes, cudaMemcpyDeviceToHost, stream));
  GPU_CHECK(cudaStreamSynchronize(stream));
  return values;
}

}  // namespace foretrain::gpu

// The kernels of collective/*.cu, on the host.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <vector>

#include "tests/cuda/streams/streams.hpp"
#include "validate/cuda/collective/device_add.hpp"
#include "validate/cuda/collective/host_adder.hpp"
#include "validate/cuda/collective/pattern.hpp"
#include "validate/cuda/collective/pattern_fill.hpp"
#include "validate/cuda/core/device.hpp"

namespace foretrain::gpu {

void DeviceBuffer::fill(Fill /*format*/, cudaStream_t /*stream*/, std::uint64_t /*seed*/) const {}

void fill_contribution(float* data, std::size_t count, int rank, cudaStream_t stream) {
  streams::enqueue(stream, [=] {
    for (std::size_t i = 0; i < count; ++i) data[i] = contribution(rank, i);
  });
}

void fill_coarse_contribution(GradientType type, void* data, std::size_t count, int rank, cudaStream_t stream) {
  streams::enqueue(stream, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      const float value = coarse_contribution(rank, i);
      if (type == GradientType::fp32) static_cast<float*>(data)[i] = value;
      if (type == GradientType::fp16) static_cast<__half*>(data)[i] = __float2half(value);
      if (type == GradientType::bf16) static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16(value);
    }
  });
}

void add_on_device(GradientType type, void* sum, std::span<const void* const> inputs, std::size_t elements,
                   cudaStream_t stream) {
  streams::enqueue(stream, [=, kept = std::vector<const void*>(inputs.begin(), inputs.end())] {
    add_serial(type, sum, kept, elements);
  });
}

}  // namespace foretrain::gpu

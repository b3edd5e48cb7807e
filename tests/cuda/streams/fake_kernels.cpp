// The kernels of collective/*.cu, on the host.
#include <vector>

#include "tests/cuda/streams/streams.hpp"
#include "validate/cuda/collective/device_add.hpp"
#include "validate/cuda/collective/host_adder.hpp"
#include "validate/cuda/collective/pattern.hpp"
#include "validate/cuda/collective/pattern_fill.hpp"
#include "validate/cuda/core/device.hpp"
#include "validate/cuda/core/idle.hpp"

namespace foretrain::gpu {

void DeviceBuffer::fill(Format /*format*/, cudaStream_t /*stream*/, std::uint64_t /*seed*/) const {}

void launch_spin(std::int64_t /*cycles*/, cudaStream_t stream) {
  streams::enqueue(stream, [] {});
}

void fill_contribution(float* data, std::size_t count, int rank, cudaStream_t stream) {
  streams::enqueue(stream, [=] {
    for (std::size_t i = 0; i < count; ++i) data[i] = contribution(rank, i);
  });
}

void add_on_device(float* sum, std::span<const float* const> inputs, std::size_t elements, cudaStream_t stream) {
  streams::enqueue(
      stream, [=, kept = std::vector<const float*>(inputs.begin(), inputs.end())] { add_serial(sum, kept, elements); });
}

}  // namespace foretrain::gpu

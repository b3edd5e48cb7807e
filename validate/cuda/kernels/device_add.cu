#include <stdexcept>

#include "validate/cuda/collective/device_add.hpp"
#include "validate/cuda/kernels/vector.cuh"

namespace foretrain::gpu {

namespace {

struct Inputs {
  const float* data[most_addends];
  int count;
};

template <int width>
__global__ void add_kernel(float* sum, Inputs inputs, std::int64_t packs) {
  for (std::int64_t i = global_thread(); i < packs; i += all_threads()) {
    Pack<float, width> total{};
    for (int w = 0; w < inputs.count; ++w) {
      const auto addend = load<float, width>(inputs.data[w] + i * width);
#pragma unroll
      for (int k = 0; k < width; ++k) total.value[k] += addend.value[k];
    }
    store<float, width>(sum + i * width, total);
  }
}

template <int width>
void launch(float* sum, const Inputs& inputs, std::int64_t packs, cudaStream_t stream) {
  if (packs == 0) return;
  add_kernel<width><<<blocks_for(packs, 4096), block_size, 0, stream>>>(sum, inputs, packs);
  GPU_CHECK(cudaGetLastError());
}

}  // namespace

void add_on_device(float* sum, std::span<const float* const> inputs, std::size_t elements, cudaStream_t stream) {
  if (inputs.empty() || inputs.size() > most_addends) {
    throw std::invalid_argument("a sum on a GPU has 1 to " + std::to_string(most_addends) + " addends");
  }
  Inputs passed{};
  passed.count = static_cast<int>(inputs.size());
  std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(sum);
  for (std::size_t w = 0; w < inputs.size(); ++w) {
    passed.data[w] = inputs[w];
    bits |= reinterpret_cast<std::uintptr_t>(inputs[w]);
  }
  // Sixteen bytes are loaded at once where all buffers are aligned, else one number at a time.
  constexpr int width = full_width<float>;
  const std::int64_t packs = bits % 16 == 0 ? static_cast<std::int64_t>(elements) / width : 0, done = packs * width;
  launch<width>(sum, passed, packs, stream);
  for (int w = 0; w < passed.count; ++w) passed.data[w] += done;
  launch<1>(sum + done, passed, static_cast<std::int64_t>(elements) - done, stream);
}

}  // namespace foretrain::gpu

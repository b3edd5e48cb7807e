#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <stdexcept>

#include "validate/cuda/collective/device_add.hpp"
#include "validate/cuda/core/error.hpp"

namespace foretrain::gpu {

namespace {

struct Inputs {
  const void* data[most_addends];
  int count;
};

/// As many values as 16 bytes hold are loaded at once where all buffers are aligned, else one at a time.
template <typename T, int Width>
struct alignas(sizeof(T) * Width) Pack {
  T values[Width];
};

template <typename T, int Width>
__global__ void add_kernel(T* sum, Inputs inputs, std::size_t packs) {
  using Wide = Pack<T, Width>;
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < packs; i += step) {
    float total[Width] = {};
    for (int w = 0; w < inputs.count; ++w) {
      const Wide addend = static_cast<const Wide*>(inputs.data[w])[i];
#pragma unroll
      for (int k = 0; k < Width; ++k) total[k] += static_cast<float>(addend.values[k]);
    }
    Wide result;
#pragma unroll
    for (int k = 0; k < Width; ++k) result.values[k] = static_cast<T>(total[k]);
    reinterpret_cast<Wide*>(sum)[i] = result;
  }
}

template <typename T, int Width>
void launch(T* sum, const Inputs& inputs, std::size_t packs, cudaStream_t stream) {
  if (packs == 0) return;
  const std::size_t blocks = (packs + 255) / 256;
  add_kernel<T, Width><<<static_cast<unsigned>(blocks < 4096 ? blocks : 4096), 256, 0, stream>>>(sum, inputs, packs);
  GPU_CHECK(cudaGetLastError());
}

template <typename T>
void add(void* sum, Inputs inputs, std::size_t elements, cudaStream_t stream) {
  constexpr int width = 16 / sizeof(T);
  std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(sum);
  for (int w = 0; w < inputs.count; ++w) bits |= reinterpret_cast<std::uintptr_t>(inputs.data[w]);
  const std::size_t packs = bits % 16 == 0 ? elements / width : 0;
  launch<T, width>(static_cast<T*>(sum), inputs, packs, stream);
  const std::size_t done = packs * width;
  for (int w = 0; w < inputs.count; ++w) inputs.data[w] = static_cast<const T*>(inputs.data[w]) + done;
  launch<T, 1>(static_cast<T*>(sum) + done, inputs, elements - done, stream);
}

}  // namespace

void add_on_device(GradientType type, void* sum, std::span<const void* const> inputs, std::size_t elements,
                   cudaStream_t stream) {
  if (inputs.empty() || inputs.size() > most_addends) {
    throw std::invalid_argument("a sum on a GPU has 1 to " + std::to_string(most_addends) + " addends");
  }
  Inputs passed{};
  passed.count = static_cast<int>(inputs.size());
  for (std::size_t w = 0; w < inputs.size(); ++w) passed.data[w] = inputs[w];
  switch (type) {
    case GradientType::fp32:
      return add<float>(sum, passed, elements, stream);
    case GradientType::fp16:
      return add<__half>(sum, passed, elements, stream);
    case GradientType::bf16:
      return add<__nv_bfloat16>(sum, passed, elements, stream);
  }
}

}  // namespace foretrain::gpu

#include "validate/cuda/collective/pattern.hpp"
#include "validate/cuda/kernels/vector.cuh"
#include "validate/cuda/math/streaming_kernels.hpp"

namespace foretrain::gpu {

namespace {

/// As many as keep every multiprocessor of the largest GPUs busy.
constexpr std::int64_t reduction_blocks = 2048;

/// Number `i` of the outputs, `width` at once; returns the sum of the inputs' numbers there.
template <typename T, int width, int fixed_inputs>
__device__ float element(const ElementwiseOperands& operands, std::int64_t i) {
  float sum[width];
  for (int e = 0; e < width; ++e) sum[e] = 0.0F;
  const int inputs = fixed_inputs > 0 ? fixed_inputs : operands.input_count;
#pragma unroll
  for (int k = 0; k < inputs; ++k) {
    const auto pack = load<T, width>(static_cast<const T*>(operands.inputs[k]) + i * width);
    for (int e = 0; e < width; ++e) sum[e] += to_float(pack.value[e]);
  }
  float all = 0.0F;
  for (int e = 0; e < width; ++e) all += sum[e];
  for (int j = 0; j < operands.output_count; ++j) {
    Pack<T, width> pack;
    for (int e = 0; e < width; ++e) pack.value[e] = from_float<T>(0.5F * static_cast<float>(j + 1) * sum[e]);
    store<T, width>(static_cast<T*>(operands.outputs[j]) + i * width, pack);
  }
  return all;
}

template <typename T, int inputs>
__device__ float elements_of_thread(const ElementwiseOperands& operands, std::int64_t elements) {
  constexpr int width = full_width<T>;
  const std::int64_t packs = elements / width;
  float all = 0.0F;
  for (std::int64_t i = global_thread(); i < packs; i += all_threads()) {
    all += element<T, width, inputs>(operands, i);
  }
  const std::int64_t rest = packs * width + global_thread();
  if (rest < elements) all += element<T, 1, inputs>(operands, rest);
  return all;
}

template <typename T, int inputs>
__global__ void elementwise_kernel(ElementwiseOperands operands, std::int64_t elements) {
  elements_of_thread<T, inputs>(operands, elements);
}

/// The block that ends last adds what the blocks found, and leaves the counter as it was.
template <typename T, int inputs>
__global__ void reduction_kernel(ElementwiseOperands operands, std::int64_t elements, float* result, float* scratch) {
  const float mine = over_block(elements_of_thread<T, inputs>(operands, elements), Add());
  auto* const counter = reinterpret_cast<unsigned*>(scratch + reduction_blocks);
  __shared__ bool last;
  if (threadIdx.x == 0) {
    scratch[blockIdx.x] = mine;
    __threadfence();
    last = atomicAdd(counter, 1U) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  float sum = 0.0F;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) sum += static_cast<volatile float*>(scratch)[i];
  sum = over_block(sum, Add());
  if (threadIdx.x == 0) {
    *result = sum;
    *counter = 0U;
  }
}

/// Calls `work` with the number of inputs as a constant where it is small, so that their loads are in flight together.
template <typename Work>
void with_inputs(int count, Work work) {
  if (count == 1) return work.template operator()<1>();
  if (count == 2) return work.template operator()<2>();
  if (count == 3) return work.template operator()<3>();
  return work.template operator()<0>();
}

/// Sixteen bytes at a time; `gathered` in rows of one kilobyte from anywhere, as an embedding reads its table.
template <bool gathered>
__global__ void traffic_kernel(const uint4* read, std::int64_t reads, uint4* written, std::int64_t writes) {
  constexpr std::int64_t row = 64;
  const std::int64_t rows = reads / row;
  uint4 words = make_uint4(threadIdx.x, blockIdx.x, 1U, 2U);
  const std::int64_t most = reads > writes ? reads : writes;
  for (std::int64_t i = global_thread(); i < most; i += all_threads()) {
    if (i < reads) {
      std::int64_t at = i;
      if (gathered && i / row < rows) {
        const auto bits = mixed((static_cast<std::uint64_t>(i / row) + 1) * 0x9e3779b97f4a7c15ULL);
        at = static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(rows)) * row + i % row;
      }
      const uint4 part = read[at];
      words.x ^= part.x;
      words.y ^= part.y;
      words.z ^= part.z;
      words.w ^= part.w;
    }
    if (i < writes) written[i] = words;
  }
  // Never true, which the compiler cannot know: reads without a use would be left out.
  if (writes == 0 && words.x == 0x9e3779b9U && words.y == 0x7f4a7c15U && words.z == 0xbf58476dU && words.w == 3U) {
    *const_cast<uint4*>(read) = words;
  }
}

/// A norm: every block reads a row, reduces it, and writes its part of the result from what it read and the reduction.
template <typename T>
__global__ void row_kernel(const T* read, std::int64_t reads, T* written, std::int64_t writes, std::int64_t rows) {
  constexpr int width = full_width<T>;
  const std::int64_t from = reads * blockIdx.x / rows, to = reads * (blockIdx.x + std::int64_t{1}) / rows;
  float sum = 0.0F;
  for (std::int64_t i = from + threadIdx.x; i < to; i += blockDim.x) {
    const auto pack = load<T, width>(read + i * width);
    for (int e = 0; e < width; ++e) sum += to_float(pack.value[e]);
  }
  const float scale = 1.0F / (1.0F + fabsf(over_block(sum, Add())));
  const std::int64_t first = writes * blockIdx.x / rows, last = writes * (blockIdx.x + std::int64_t{1}) / rows;
  for (std::int64_t i = first + threadIdx.x; i < last; i += blockDim.x) {
    Pack<T, width> pack{};
    if (from + i - first < to) pack = load<T, width>(read + (from + i - first) * width);
    for (int e = 0; e < width; ++e) pack.value[e] = from_float<T>(to_float(pack.value[e]) * scale);
    store<T, width>(written + i * width, pack);
  }
}

template <typename T>
__global__ void cast_kernel(const float* from, T* to, std::int64_t elements) {
  constexpr int width = 4;
  const std::int64_t packs = elements / width, i = global_thread();
  if (i < packs) {
    const auto wide = load<float, width>(from + i * width);
    Pack<T, width> narrow;
    for (int e = 0; e < width; ++e) narrow.value[e] = from_float<T>(wide.value[e]);
    store<T, width>(to + i * width, narrow);
  }
  const std::int64_t rest = packs * width + i;
  if (rest < elements) to[rest] = from_float<T>(from[rest]);
}

__global__ void indices_kernel(std::int64_t* indices, std::int64_t count, std::int64_t limit, std::uint64_t seed) {
  for (std::int64_t i = global_thread(); i < count; i += all_threads()) {
    const std::uint64_t bits = mixed((seed + static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15ULL);
    indices[i] = static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(limit));
  }
}

}  // namespace

void elementwise(Format format, const ElementwiseOperands& operands, std::int64_t elements, cudaStream_t stream) {
  with_type(format, [&]<typename T>() {
    with_inputs(operands.input_count, [&]<int inputs>() {
      elementwise_kernel<T, inputs>
          <<<blocks_for(elements / full_width<T> + 1), block_size, 0, stream>>>(operands, elements);
    });
  });
  GPU_CHECK(cudaGetLastError());
}

void reduction(Format format, const ElementwiseOperands& operands, std::int64_t elements, float* result, float* scratch,
               cudaStream_t stream) {
  with_type(format, [&]<typename T>() {
    with_inputs(operands.input_count, [&]<int inputs>() {
      reduction_kernel<T, inputs>
          <<<blocks_for(elements / full_width<T> + 1, reduction_blocks), block_size, 0, stream>>>(operands, elements,
                                                                                                  result, scratch);
    });
  });
  GPU_CHECK(cudaGetLastError());
}

std::int64_t reduction_scratch() { return reduction_blocks + 1; }

void traffic(const void* read, std::int64_t read_bytes, void* written, std::int64_t written_bytes, bool gathered,
             cudaStream_t stream) {
  const std::int64_t reads = read_bytes / 16, writes = written_bytes / 16;
  // Fewer, longer-lived threads where only reads count: each keeps one running value.
  (gathered ? traffic_kernel<true> : traffic_kernel<false>)<<<blocks_for(reads > writes ? reads : writes, 65536),
                                                              block_size, 0, stream>>>(
      static_cast<const uint4*>(read), reads, static_cast<uint4*>(written), writes);
  GPU_CHECK(cudaGetLastError());
}

void row_traffic(Format format, const void* read, std::int64_t read_bytes, void* written, std::int64_t written_bytes,
                 cudaStream_t stream) {
  constexpr std::int64_t row_bytes = 2048;
  const std::int64_t rows = read_bytes / row_bytes > 1 ? read_bytes / row_bytes : 1;
  with_type(format, [&]<typename T>() {
    row_kernel<T><<<static_cast<unsigned>(rows), 128, 0, stream>>>(static_cast<const T*>(read), read_bytes / 16,
                                                                  static_cast<T*>(written), written_bytes / 16, rows);
  });
  GPU_CHECK(cudaGetLastError());
}

void cast(Format format, const float* from, void* to, std::int64_t elements, cudaStream_t stream) {
  with_type(format, [&]<typename T>() {
    cast_kernel<T><<<blocks_for(elements / 4 + 4), block_size, 0, stream>>>(from, static_cast<T*>(to), elements);
  });
  GPU_CHECK(cudaGetLastError());
}

void fill_indices(std::int64_t* indices, std::int64_t count, std::int64_t limit, std::uint64_t seed,
                  cudaStream_t stream) {
  indices_kernel<<<blocks_for(count, 4096), block_size, 0, stream>>>(indices, count, limit, seed);
  GPU_CHECK(cudaGetLastError());
}

}  // namespace foretrain::gpu

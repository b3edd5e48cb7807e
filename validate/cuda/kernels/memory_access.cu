#include <algorithm>

#include "validate/cuda/core/device.hpp"
#include "validate/cuda/kernels/memory_access.hpp"

namespace foretrain::gpu {

namespace {

// Blocks that a multiprocessor is to hold at once: as many as its threads allow (CUDA programming guide, technical
// specifications per compute capability), or those that do not fit would run after all others.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 750
constexpr int blocks_per_sm = 1024 / AccessGrid::threads;
#elif defined(__CUDA_ARCH__) && \
    (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
constexpr int blocks_per_sm = 1536 / AccessGrid::threads;
#else
constexpr int blocks_per_sm = 2048 / AccessGrid::threads;
#endif

__device__ std::uint32_t folded_word(std::uint32_t word) { return word; }
__device__ std::uint32_t folded_word(uint4 words) { return words.x ^ words.y ^ words.z ^ words.w; }

/// The ring's next line: a linear congruential generator of full period modulo a power of two (Hull and Dobell, "Random
/// Number Generators", 1962: the increment odd, the multiplier 1 modulo 4).
__device__ std::uint32_t next_line(std::uint32_t line, std::uint32_t lines) {
  return (line * 1664525U + 1013904223U) & (lines - 1U);
}

/// The warp's words in one, written by its first thread.
__device__ void keep_folded(std::uint32_t word, std::uint32_t* folded) {
  for (int distance = 16; distance > 0; distance /= 2) word ^= __shfl_xor_sync(0xffffffffU, word, distance);
  if (threadIdx.x % 32 == 0) folded[(static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32] = word;
}

/// Each thread keeps four loads on their way.
template <typename T>
__global__ void __launch_bounds__(AccessGrid::threads, blocks_per_sm)
    read_kernel(const T* data, std::size_t count, int passes, bool rotated, std::uint32_t* folded) {
  constexpr int in_flight = 4;
  const std::size_t part = (count + gridDim.x - 1) / gridDim.x;
  std::uint32_t word = 0;
  for (int pass = 0; pass < passes; ++pass) {
    const std::size_t owner = rotated ? (blockIdx.x + static_cast<std::size_t>(pass) * 37) % gridDim.x : blockIdx.x;
    const T* at = data + min(owner * part, count) + threadIdx.x;
    const T* const end = data + min((owner + 1) * part, count);
    for (; at + (in_flight - 1) * AccessGrid::threads < end; at += in_flight * AccessGrid::threads) {
      T values[in_flight];
#pragma unroll
      for (int j = 0; j < in_flight; ++j) values[j] = at[j * AccessGrid::threads];
#pragma unroll
      for (int j = 0; j < in_flight; ++j) word ^= folded_word(values[j]);
    }
    for (; at < end; at += AccessGrid::threads) word ^= folded_word(*at);
    // Without it the compiler may notice that a second pass over the same data undoes the first.
    asm volatile("" ::: "memory");
  }
  keep_folded(word, folded);
}

/// Read number i is at place(i).
template <typename T, typename Place>
__global__ void __launch_bounds__(AccessGrid::threads, blocks_per_sm)
    scattered_kernel(const T* data, std::size_t reads, Place place, std::uint32_t* folded) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  std::uint32_t word = 0;
#pragma unroll 4
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < reads; i += step) {
    word ^= folded_word(data[place(i)]);
  }
  keep_folded(word, folded);
}

/// A multiple of the number.
struct Strided {
  std::size_t stride;
  __device__ std::size_t operator()(std::size_t i) const { return i * stride; }
};

/// MurmurHash3's finaliser, scaled to [0, count) as Lemire does ("Fast Random Integer Generation in an Interval",
/// 2019); `count` is at most 2³².
struct Random {
  std::size_t count;
  std::uint32_t seed;
  __device__ std::size_t operator()(std::size_t i) const {
    std::uint32_t h = static_cast<std::uint32_t>(i) * 0x9e3779b1U + seed;
    h = (h ^ (h >> 16)) * 0x85ebca6bU;
    h = (h ^ (h >> 13)) * 0xc2b2ae35U;
    h ^= h >> 16;
    return static_cast<std::size_t>((static_cast<std::uint64_t>(h) * count) >> 32);
  }
};

__global__ void chase_setup_kernel(std::uint32_t* data, std::uint32_t lines) {
  const std::uint32_t line = blockIdx.x * blockDim.x + threadIdx.x;
  if (line < lines) data[static_cast<std::size_t>(line) * (chase_line / sizeof(*data))] = next_line(line, lines);
}

__global__ void chase_kernel(const std::uint32_t* data, std::uint32_t steps, std::uint32_t* at) {
  std::uint32_t line = *at;
#pragma unroll 8
  for (std::uint32_t i = 0; i < steps; ++i) line = data[static_cast<std::size_t>(line) * (chase_line / sizeof(*data))];
  *at = line;
}

/// Calls `launch` with the data as elements of so many bytes, 4 or 16.
template <typename Launch>
void with_elements(const void* data, int element, Launch launch) {
  if (element == 16) {
    launch(static_cast<const uint4*>(data));
  } else {
    launch(static_cast<const std::uint32_t*>(data));
  }
  GPU_CHECK(cudaGetLastError());
}

}  // namespace

AccessGrid access_grid() {
  const int sms = device_attribute(cudaDevAttrMultiProcessorCount);
  const int threads = device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  return {static_cast<unsigned>(sms * std::max(1, threads / static_cast<int>(AccessGrid::threads)))};
}

void launch_read(const AccessGrid& grid, const void* data, std::size_t count, int element, int passes, bool rotated,
                 std::uint32_t* folded, cudaStream_t stream) {
  with_elements(data, element, [&](const auto* elements) {
    read_kernel<<<grid.blocks, AccessGrid::threads, 0, stream>>>(elements, count, passes, rotated, folded);
  });
}

void launch_strided_read(const AccessGrid& grid, const std::uint32_t* data, std::size_t count, std::size_t stride,
                         std::uint32_t* folded, cudaStream_t stream) {
  scattered_kernel<<<grid.blocks, AccessGrid::threads, 0, stream>>>(data, count, Strided{stride}, folded);
  GPU_CHECK(cudaGetLastError());
}

void launch_random_read(const AccessGrid& grid, const void* data, std::size_t count, int element, std::uint32_t reads,
                        std::uint32_t seed, std::uint32_t* folded, cudaStream_t stream) {
  with_elements(data, element, [&](const auto* elements) {
    scattered_kernel<<<grid.blocks, AccessGrid::threads, 0, stream>>>(elements, reads, Random{count, seed}, folded);
  });
}

void launch_chase_setup(std::uint32_t* data, std::uint32_t lines, cudaStream_t stream) {
  chase_setup_kernel<<<(lines + 255) / 256, 256, 0, stream>>>(data, lines);
  GPU_CHECK(cudaGetLastError());
}

void launch_chase(const std::uint32_t* data, std::uint32_t steps, std::uint32_t* at, cudaStream_t stream) {
  chase_kernel<<<1, 1, 0, stream>>>(data, steps, at);
  GPU_CHECK(cudaGetLastError());
}

}  // namespace foretrain::gpu

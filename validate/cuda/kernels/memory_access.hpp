// Kernels that only touch memory: what they read is folded into one word per warp, so that no load can be left out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "validate/cuda/core/host_device.hpp"

namespace foretrain::gpu {

/// The shape of every kernel here: as many threads as the GPU holds at once, none waits for another.
struct AccessGrid {
  unsigned blocks = 0;
  static constexpr unsigned threads = 256;
  [[nodiscard]] std::size_t warps() const { return static_cast<std::size_t>(blocks) * (threads / 32); }
};
AccessGrid access_grid(int device);

/// Where a block reads in each pass: always in its own part of the data, which may stay in its multiprocessor's L1, or
/// in the part of another block each time, which may stay in the L2 only.
enum class Sharing { own_part, rotated };

/// Reads `count` elements of `element` bytes (4 or 16) `passes` times. `folded` gets the exclusive or of each warp's
/// words, grid.warps() of them; over all warps that is the data's own where `passes` is odd, and zero where it is even.
void launch_read(const AccessGrid& grid, const void* data, std::size_t count, int element, int passes, Sharing sharing,
                 std::uint32_t* folded, cudaStream_t stream);

/// Reads the 4-byte words at offset, offset + stride, … (in words), `count` of them.
void launch_strided_read(const AccessGrid& grid, const std::uint32_t* data, std::size_t count, std::size_t stride,
                         std::size_t offset, std::uint32_t* folded, cudaStream_t stream);

/// Makes `reads` reads of elements of 4 or 16 bytes; the i-th is at random_index(i, seed, count).
void launch_random_read(const AccessGrid& grid, const void* data, std::size_t count, int element, std::uint32_t reads,
                        std::uint32_t seed, std::uint32_t* folded, cudaStream_t stream);

/// Writes the 16-byte elements of a buffer: every word is `value`.
void launch_write(const AccessGrid& grid, void* data, std::size_t count, std::uint32_t value, cudaStream_t stream);
/// Copies 16-byte elements.
void launch_copy(const AccessGrid& grid, const void* from, void* to, std::size_t count, cudaStream_t stream);

/// Lines of 128 bytes whose first word is the number of the next: one ring through all `lines`, a power of two.
inline constexpr std::size_t chase_line = 128;
void launch_chase_setup(std::uint32_t* data, std::uint32_t lines, cudaStream_t stream);
/// One thread follows the ring for `steps` from where `at` says, and writes there where it ended.
void launch_chase(const std::uint32_t* data, std::uint32_t steps, std::uint32_t* at, cudaStream_t stream);

/// MurmurHash3's finaliser, scaled to [0, count) as Lemire does ("Fast Random Integer Generation in an Interval",
/// 2019); `count` is at most 2³².
FORETRAIN_HOST_DEVICE inline std::size_t random_index(std::uint32_t i, std::uint32_t seed, std::size_t count) {
  std::uint32_t h = i * 0x9e3779b1U + seed;
  h = (h ^ (h >> 16)) * 0x85ebca6bU;
  h = (h ^ (h >> 13)) * 0xc2b2ae35U;
  h ^= h >> 16;
  return static_cast<std::size_t>((static_cast<std::uint64_t>(h) * count) >> 32);
}

/// The ring's next line: a linear congruential generator of full period modulo a power of two (Hull and Dobell, "Random
/// Number Generators", 1962: the increment odd, the multiplier 1 modulo 4).
FORETRAIN_HOST_DEVICE inline std::uint32_t next_line(std::uint32_t line, std::uint32_t lines) {
  return (line * 1664525U + 1013904223U) & (lines - 1U);
}

}  // namespace foretrain::gpu

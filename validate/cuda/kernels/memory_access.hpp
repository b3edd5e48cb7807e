// Kernels that only touch memory: what they read is folded into one word per warp, so that no load can be left out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace foretrain::gpu {

/// The shape of every kernel here: as many threads as the GPU holds at once, none waits for another.
struct AccessGrid {
  unsigned blocks = 0;
  static constexpr unsigned threads = 256;
  [[nodiscard]] std::size_t warps() const { return static_cast<std::size_t>(blocks) * (threads / 32); }
};
AccessGrid access_grid();

/// Reads `count` elements of `element` bytes (4 or 16) `passes` times. A block always its own part of the data, which
/// may stay in its multiprocessor's L1, or with `rotated` the part of another block each time, which may stay in the L2
/// only. `folded` gets the exclusive or of each warp's words, grid.warps() of them.
void launch_read(const AccessGrid& grid, const void* data, std::size_t count, int element, int passes, bool rotated,
                 std::uint32_t* folded, cudaStream_t stream);

/// Reads `count` 4-byte words, `stride` words apart.
void launch_strided_read(const AccessGrid& grid, const std::uint32_t* data, std::size_t count, std::size_t stride,
                         std::uint32_t* folded, cudaStream_t stream);

/// Makes `reads` reads of elements of 4 or 16 bytes; at random places that the seed draws.
void launch_random_read(const AccessGrid& grid, const void* data, std::size_t count, int element, std::uint32_t reads,
                        std::uint32_t seed, std::uint32_t* folded, cudaStream_t stream);

/// Lines of 128 bytes whose first word is the number of the next: one ring through all `lines`, a power of two.
inline constexpr std::size_t chase_line = 128;
void launch_chase_setup(std::uint32_t* data, std::uint32_t lines, cudaStream_t stream);
/// One thread follows the ring for `steps` from where `at` says, and writes there where it ended.
void launch_chase(const std::uint32_t* data, std::uint32_t steps, std::uint32_t* at, cudaStream_t stream);

}  // namespace foretrain::gpu

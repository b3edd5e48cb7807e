// Loops that read, write and copy memory as fast as a core can, in the widest vectors that it has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foretrain {

/// Walks `passes` times over `bytes` (a multiple of 1024; of 512 to copy) from `data`, whole lines in vectors, and
/// returns a value that depends on every byte read. `data` need not be aligned.
struct MemoryKernels {
  std::uint64_t (*read)(const std::byte* data, std::size_t bytes, std::size_t passes);
  std::uint64_t (*read_backward)(const std::byte* data, std::size_t bytes, std::size_t passes);
  void (*write)(std::byte* data, std::size_t bytes, std::size_t passes);
  void (*copy)(std::byte* destination, const std::byte* source, std::size_t bytes, std::size_t passes);
  int vector_bytes;  ///< of one load
};

/// The widest vectors of this processor.
const MemoryKernels& memory_kernels();

/// One 8-byte load at every `stride` bytes, from the first place to the last or back. Returns the number of loads.
std::size_t read_strided(const std::byte* data, std::size_t bytes, std::size_t stride, bool backward);

/// `bursts` runs of `burst` bytes (a multiple of 64, a power of two) each, one 8-byte load per line, at random
/// multiples of the burst in `bytes` (a power of two); no load waits for another. Returns the number of loads.
std::size_t read_random(const std::byte* data, std::size_t bytes, std::size_t burst, std::size_t bursts);

}  // namespace foretrain

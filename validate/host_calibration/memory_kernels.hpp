// Loops that read, write and copy memory as fast as a core can, in the widest vectors that it has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foretrain {

/// Walks `passes` times over `bytes` (a multiple of 1024; of 512 to copy) from `data`, whole lines in vectors, and
/// returns a value that depends on every byte read. `data` need not be aligned.
struct MemoryKernels {
  std::uint64_t (*read)(const std::byte* data, std::size_t bytes, std::size_t passes);
  void (*write)(std::byte* data, std::size_t bytes, std::size_t passes);
  void (*copy)(std::byte* destination, const std::byte* source, std::size_t bytes, std::size_t passes);
  int vector_bytes;  ///< of one load
};

/// The widest vectors of this processor.
const MemoryKernels& memory_kernels();

}  // namespace foretrain

// Loops that read, write and copy memory as fast as a core can, in the widest vectors that it has.
#pragma once

#include <cstddef>

namespace foretrain {

/// Walks `passes` times over `bytes` (a multiple of 1024; of 512 to copy) from `data`, whole lines in vectors. `data`
/// need not be aligned.
struct MemoryKernels {
  void (*read)(const std::byte* data, std::size_t bytes, std::size_t passes);
  void (*write)(std::byte* data, std::size_t bytes, std::size_t passes);
  void (*copy)(std::byte* destination, const std::byte* source, std::size_t bytes, std::size_t passes);
  int vector_bytes;  ///< of one load
};

/// The widest vectors of this processor.
const MemoryKernels& memory_kernels();

}  // namespace foretrain

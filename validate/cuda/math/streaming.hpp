// The kernel that stands for operators bound by memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace foretrain::gpu {

/// Memory in words of sixteen bytes. What is read lies in two buffers, one behind the other.
struct StreamingWords {
  std::int64_t first = 0, rest = 0, written = 0;
};
struct StreamingOperands {
  void *first = nullptr, *rest = nullptr, *written = nullptr;
};

/// Reads and writes these words; `gathered`, as an embedding reads its table: in rows of one kilobyte from anywhere.
/// Finite inputs give finite outputs, in fp32, fp16 and bf16.
void stream_words(const StreamingOperands& operands, const StreamingWords& words, bool gathered, cudaStream_t stream);

}  // namespace foretrain::gpu

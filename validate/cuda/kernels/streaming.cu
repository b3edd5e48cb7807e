#include <algorithm>

#include "validate/cuda/kernels/vector.cuh"
#include "validate/cuda/math/streaming.hpp"

namespace foretrain::gpu {

namespace {

/// Word `at` of what is read: of the first buffer, and behind its end of the rest. Rows of one kilobyte that are
/// gathered come from anywhere, each once, by a prime beyond any number of rows.
template <bool gathered>
__device__ uint4 read_word(const StreamingOperands& operands, const StreamingWords& words, std::int64_t at) {
  constexpr std::int64_t row = 64, prime = 2654435761;
  const std::int64_t rows = (words.first + words.rest) / row;
  if (gathered && at / row < rows) at = at / row * prime % rows * row + at % row;
  const auto* const first = static_cast<const uint4*>(operands.first);
  const auto* const rest = static_cast<const uint4*>(operands.rest);
  return at < words.first ? first[at] : rest[at - words.first];
}

/// Mixes some bits of the mantissas, so that what is finite stays so.
__device__ void fold(uint4& words, const uint4& part) {
  constexpr unsigned folded_bits = 0x007f007fU;
  words.x ^= part.x & folded_bits;
  words.y ^= part.y & folded_bits;
  words.z ^= part.z & folded_bits;
  words.w ^= part.w & folded_bits;
}

/// Thread i of `units` reads and writes words i, i + units, …: of an operator with two inputs those of one place.
template <bool gathered>
__global__ void streaming_kernel(StreamingOperands operands, StreamingWords words, std::int64_t units) {
  auto* const written = static_cast<uint4*>(operands.written);
  const std::int64_t read = words.first + words.rest;
  for (std::int64_t i = global_thread(); i < units; i += all_threads()) {
    const unsigned drawn = static_cast<unsigned>(i) * 0x1e3779b1U & 0x3fff3fffU;
    uint4 result = make_uint4(drawn, drawn, drawn, drawn);
    if (i < read) result = read_word<gathered>(operands, words, i);
#pragma unroll 4
    for (std::int64_t at = i + units; at < read; at += units) fold(result, read_word<gathered>(operands, words, at));
    for (std::int64_t at = i; at < words.written; at += units) written[at] = result;
    // Never true, which the compiler cannot know: reads without a use would be left out.
    if (i >= words.written && result.x == 0x9e3779b9U && result.y == 0x7f4a7c15U && result.z == 0xbf58476dU &&
        result.w == 3U) {
      *static_cast<uint4*>(operands.first) = result;
    }
  }
}

}  // namespace

void stream_words(const StreamingOperands& operands, const StreamingWords& words, bool gathered, cudaStream_t stream) {
  constexpr std::int64_t most_of_a_thread = 8;  // if one side is far shorter, threads of the longer one
  const std::int64_t read = words.first + words.rest;
  const std::int64_t less = std::min(read, words.written), more = std::max(read, words.written);
  const std::int64_t units = less > 0 && more <= most_of_a_thread * less ? less : more;
  (gathered ? streaming_kernel<true> : streaming_kernel<false>)<<<blocks_for(units), block_size, 0, stream>>>(
      operands, words, units);
  GPU_CHECK(cudaGetLastError());
}

}  // namespace foretrain::gpu

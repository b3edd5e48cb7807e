#include "validate/cuda/kernels/vector.cuh"
#include "validate/cuda/math/streaming.hpp"

namespace foretrain::gpu {

namespace {

/// Word `at` of what is read: of the first buffer, and behind its end of the rest.
__device__ uint4 read_word(const StreamingOperands& operands, const StreamingWords& words, std::int64_t at) {
  const auto* const first = static_cast<const uint4*>(operands.first);
  const auto* const rest = static_cast<const uint4*>(operands.rest);
  return at < words.first ? first[at] : rest[at - words.first];
}

__device__ void fold(uint4& words, const uint4& part) {
  words.x ^= part.x & folded_bits;
  words.y ^= part.y & folded_bits;
  words.z ^= part.z & folded_bits;
  words.w ^= part.w & folded_bits;
}

template <bool gathered>
__global__ void streaming_kernel(StreamingOperands operands, StreamingWords words) {
  auto* const written = static_cast<uint4*>(operands.written);
  const std::int64_t units = words.units();
  for (std::int64_t i = global_thread(); i < units; i += all_threads()) {
    const auto place = [&](std::int64_t at) { return gathered ? gathered_word(at, words.read()) : at; };
    const unsigned drawn = drawn_word(i);
    uint4 result = make_uint4(drawn, drawn, drawn, drawn);
    if (i < words.read()) result = read_word(operands, words, place(i));
#pragma unroll 4
    for (std::int64_t at = i + units; at < words.read(); at += units) {
      fold(result, read_word(operands, words, place(at)));
    }
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
  (gathered ? streaming_kernel<true> : streaming_kernel<false>)<<<blocks_for(words.units()), block_size, 0, stream>>>(
      operands, words);
  GPU_CHECK(cudaGetLastError());
}

}  // namespace foretrain::gpu

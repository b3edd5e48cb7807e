#include "validate/cuda/math/streaming.hpp"

#include <algorithm>

#include "validate/cuda/math/format.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::int64_t word_bytes = 16;

/// What the operator before wrote comes first: one tensor of an elementwise operator, all of a reduction's.
StreamingWords words_of(const Traffic& traffic) {
  const std::int64_t read = traffic.read / word_bytes, written = traffic.written / word_bytes;
  const bool one_of_several = traffic.pattern == "elementwise" && written > 0 && written < read;
  const std::int64_t first = one_of_several ? written : read;
  return {first, read - first, written};
}

std::size_t bytes_of(std::int64_t words) { return static_cast<std::size_t>(words * word_bytes); }

}  // namespace

StreamingRunner::StreamingRunner(const OperatorSpec& spec, const RunnerSetting& setting)
    : traffic_(traffic_of(spec)), words_(words_of(traffic_)) {
  setting.memory.begin_operator();
  const bool follows = traffic_.pattern == "elementwise" || traffic_.pattern == "reduction";
  const auto take = [&](std::int64_t words, Use use) {
    return setting.memory.take(bytes_of(std::max<std::int64_t>(words, 1)), Format::int8, use);
  };
  const int sets = gpu::operand_sets(setting.rotation, bytes());
  for (int set = 0; set < sets; ++set) {
    StreamingOperands operands;
    operands.first = take(words_.first, follows ? Use::handed : Use::read);
    if (words_.rest > 0) operands.rest = take(words_.rest, Use::read);
    operands.written = take(words_.written, Use::written);
    sets_.push_back(operands);
  }
}

void StreamingRunner::launch(cudaStream_t stream, int turn) {
  stream_words(sets_[static_cast<std::size_t>(turn) % sets_.size()], words_, traffic_.gathered(), stream);
}

std::size_t StreamingRunner::bytes() const { return bytes_of(words_.read() + words_.written); }

}  // namespace foretrain::gpu

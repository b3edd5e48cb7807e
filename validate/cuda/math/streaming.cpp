#include "validate/cuda/math/streaming.hpp"

#include <algorithm>
#include <cmath>

#include "validate/cuda/math/probe.hpp"

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

void StreamingRunner::verify(cudaStream_t stream) {
  launch(stream, 0);
  if (words_.written == 0) return;
  const StreamingOperands& operands = sets_.front();
  const auto number = [&](const void* data, std::int64_t word) {
    return static_cast<std::int32_t>(read_element(Format::int32, data, 4 * word + 3, stream));
  };
  const std::int64_t units = words_.units();
  for (const std::int64_t at : samples_below(words_.written, 8)) {
    std::int32_t expected = static_cast<std::int32_t>(drawn_word(at % units));
    for (std::int64_t from = at % units; from < words_.read(); from += units) {
      const std::int64_t word = traffic_.gathered() ? gathered_word(from, words_.read()) : from;
      const std::int32_t part =
          word < words_.first ? number(operands.first, word) : number(operands.rest, word - words_.first);
      expected = from < units ? part : expected ^ (part & static_cast<std::int32_t>(folded_bits));
    }
    expect_close("streamed word " + std::to_string(at), number(operands.written, at), expected, 0.0);
  }
}

std::size_t StreamingRunner::bytes() const { return bytes_of(words_.read() + words_.written); }

}  // namespace foretrain::gpu

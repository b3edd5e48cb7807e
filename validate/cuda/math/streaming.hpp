// Operators bound by memory: one kernel that reads and writes as many bytes as they do. Its results are no operator's.
#pragma once

#include <vector>

#include "validate/cuda/core/host_device.hpp"
#include "validate/cuda/math/operator_runner.hpp"

namespace foretrain::gpu {

/// Memory in words of sixteen bytes. What is read lies in two buffers, one behind the other.
struct StreamingWords {
  std::int64_t first = 0, rest = 0, written = 0;

  [[nodiscard]] FORETRAIN_HOST_DEVICE std::int64_t read() const { return first + rest; }
  /// Threads of the kernel. Number i reads and writes words i, i + units, …: of an operator with two inputs those of
  /// one place. Where one side is far shorter, threads of the longer one.
  [[nodiscard]] FORETRAIN_HOST_DEVICE std::int64_t units() const {
    constexpr std::int64_t most_of_a_thread = 8;
    const std::int64_t less = read() < written ? read() : written, more = read() < written ? written : read();
    return less > 0 && more <= most_of_a_thread * less ? less : more;
  }
};
struct StreamingOperands {
  void *first = nullptr, *rest = nullptr, *written = nullptr;
};

/// Words are written as the first that their thread read, with bits of the others mixed into its mantissa: where all
/// that is read is finite, so is the result in fp32, fp16 and bf16.
inline constexpr unsigned folded_bits = 0x007f007fU;
/// What thread `i` writes where it reads nothing.
FORETRAIN_HOST_DEVICE inline unsigned drawn_word(std::int64_t i) {
  return static_cast<unsigned>(i) * 0x1e3779b1U & 0x3fff3fffU;
}
/// As an embedding reads its table: rows of one kilobyte from anywhere, each once, by a prime beyond any number of
/// rows.
FORETRAIN_HOST_DEVICE inline std::int64_t gathered_word(std::int64_t at, std::int64_t words) {
  constexpr std::int64_t row = 64, prime = 2654435761;
  const std::int64_t rows = words / row;
  return at / row < rows ? at / row * prime % rows * row + at % row : at;
}

void stream_words(const StreamingOperands& operands, const StreamingWords& words, bool gathered, cudaStream_t stream);

class StreamingRunner final : public OperatorRunner {
 public:
  StreamingRunner(const OperatorSpec& spec, const RunnerSetting& setting);

  void launch(cudaStream_t stream, int turn) override;
  [[nodiscard]] std::size_t bytes() const override;
  [[nodiscard]] int operand_sets() const override { return static_cast<int>(sets_.size()); }

 private:
  Traffic traffic_;
  StreamingWords words_;
  std::vector<StreamingOperands> sets_;
};

}  // namespace foretrain::gpu

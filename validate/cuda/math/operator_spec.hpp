// Specification of one operator, as in a scenario: the kind and keys of `workload.operator`, as texts. Without CUDA, so
// that designs of measurements are tested where there is no GPU.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace foretrain::gpu {

/// `fields` are the keys of `workload.operator` for this kind (model/scenario/workload/operator_workload_reader.cpp),
/// without `kind`. Beside the kinds of a scenario there is `traffic` { read, written, flops (= 0), pattern, precision
/// }, in bytes and operations. A kernel that moves so much, for what a task graph knows by its traffic and its pattern
/// (elementwise, reduction, gather, optimizer) alone.
struct OperatorSpec {
  std::string kind;
  std::map<std::string, std::string> fields;

  /// Throw std::invalid_argument, naming kind and key, where the text is no such value, or missing without a fallback.
  [[nodiscard]] std::int64_t integer(const std::string& key) const;
  [[nodiscard]] std::int64_t integer_or(const std::string& key, std::int64_t fallback) const;
  [[nodiscard]] double number_or(const std::string& key, double fallback) const;
  [[nodiscard]] bool flag(const std::string& key) const;  ///< true | false (= false)
  [[nodiscard]] std::string text_or(const std::string& key, const std::string& fallback) const;
  /// One number for both sides, or "[height, width]".
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> pair_or(const std::string& key, std::int64_t fallback) const;
};

/// Bytes that an operator moves that is bound by memory, and the pattern in which it does.
struct Traffic {
  std::int64_t read = 0, written = 0;
  std::string pattern;
  [[nodiscard]] bool gathered() const { return pattern == "gather"; }
};
/// Traffic of `traffic`, `elementwise`, `reduction` and `embedding` (forward). Throws std::invalid_argument.
Traffic traffic_of(const OperatorSpec& spec);

/// Bytes of a number in the operator's precision.
std::int64_t element_size(const OperatorSpec& spec);

/// The operator as a GPU of this compute capability (as 75 for 7.5) trains it: bf16 came with 8.0, and before that half
/// precision is fp16.
OperatorSpec with_precision_of(OperatorSpec spec, int capability);

/// The operator whose kernel runs here: flash attention by another library's kernel (`native: false`) is cuDNN's own
/// from Hopper on, which is of another kind there (FlashAttention-3 against FlashAttention-2); before, they are alike.
OperatorSpec as_run(OperatorSpec spec, int capability);

/// "matmul k=64 m=128 n=256 precision=bf16": unique, and the same for the same operator.
std::string name_of(const OperatorSpec& spec);

/// The dotted keys of a scenario that states this operator.
std::map<std::string, std::string> scenario_of(const OperatorSpec& spec);

}  // namespace foretrain::gpu

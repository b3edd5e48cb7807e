// The words of a scenario for the values of scenario.hpp, in both directions.
#pragma once

#include <span>
#include <string_view>

#include "model/scenario/scenario.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

std::span<const Named<Precision>> precision_words();  ///< those that training supports: fp32 … fp8
std::span<const Named<Precision>> all_precision_words();
std::span<const Named<Optimizer>> optimizer_words();
std::span<const Named<Recompute>> recompute_words();
std::span<const Named<AttentionKind>> attention_words();
std::span<const Named<KernelSet>> kernel_set_words();
std::span<const Named<ExecutionMode>> execution_words();
std::span<const Named<SyncAlgorithm>> algorithm_words();
std::span<const Named<ServerPlacement>> placement_words();
std::span<const Named<CollectiveOperation>> operation_words();
std::span<const Named<Sync::Assignment>> assignment_words();
std::span<const Named<Sync::Priority>> priority_words();
std::span<const Named<RankGrouping>> layout_words();
std::span<const Named<TransformerFamily>> transformer_family_words();

/// The word for a value.
template <typename E>
std::string_view word_for(E value, std::span<const Named<E>> words) {
  for (const Named<E>& row : words) {
    if (row.value == value) return row.word;
  }
  return "unknown";
}
inline std::string_view name(Optimizer v) { return word_for(v, optimizer_words()); }
inline std::string_view name(Recompute v) { return word_for(v, recompute_words()); }
inline std::string_view name(AttentionKind v) { return word_for(v, attention_words()); }
inline std::string_view name(ExecutionMode v) { return word_for(v, execution_words()); }
inline std::string_view name(SyncAlgorithm v) { return word_for(v, algorithm_words()); }
inline std::string_view name(ServerPlacement v) { return word_for(v, placement_words()); }
inline std::string_view name(Sync::Assignment v) { return word_for(v, assignment_words()); }
inline std::string_view name(Sync::Priority v) { return word_for(v, priority_words()); }
inline std::string_view name(CollectiveOperation v) { return word_for(v, operation_words()); }
inline std::string_view name(TransformerFamily v) { return word_for(v, transformer_family_words()); }

}  // namespace foretrain

#include "model/scenario/names.hpp"

namespace foretrain {

std::span<const Named<Precision>> precision_words() {
  static constexpr Named<Precision> words[] = {{"fp32", Precision::fp32},
                                               {"tf32", Precision::tf32},
                                               {"fp16", Precision::fp16},
                                               {"bf16", Precision::bf16},
                                               {"fp8", Precision::fp8}};
  return words;
}

std::span<const Named<Precision>> all_precision_words() {
  static constexpr Named<Precision> words[] = {
      {"fp64", Precision::fp64}, {"fp32", Precision::fp32}, {"tf32", Precision::tf32}, {"fp16", Precision::fp16},
      {"bf16", Precision::bf16}, {"fp8", Precision::fp8},   {"int8", Precision::int8}, {"int4", Precision::int4}};
  return words;
}

std::span<const Named<Optimizer>> optimizer_words() {
  static constexpr Named<Optimizer> words[] = {{"sgd", Optimizer::sgd},
                                               {"momentum", Optimizer::momentum},
                                               {"adam", Optimizer::adam},
                                               {"adamw", Optimizer::adamw},
                                               {"adamw_8bit", Optimizer::adamw_8bit}};
  return words;
}

std::span<const Named<Recompute>> recompute_words() {
  static constexpr Named<Recompute> words[] = {{"none", Recompute::none},
                                               {"selective", Recompute::selective},
                                               {"selective_operators", Recompute::selective_operators},
                                               {"full", Recompute::full}};
  return words;
}

std::span<const Named<KernelSet>> kernel_set_words() {
  static constexpr Named<KernelSet> words[] = {{"fused", KernelSet::fused}, {"plain", KernelSet::plain}};
  return words;
}

std::span<const Named<AttentionKind>> attention_words() {
  static constexpr Named<AttentionKind> words[] = {{"standard", AttentionKind::standard},
                                                   {"flash", AttentionKind::flash},
                                                   {"memory_efficient", AttentionKind::memory_efficient},
                                                   {"flash_1", AttentionKind::flash_1},
                                                   {"flash_2", AttentionKind::flash_2},
                                                   {"flash_3", AttentionKind::flash_3}};
  return words;
}

std::span<const Named<ExecutionMode>> execution_words() {
  static constexpr Named<ExecutionMode> words[] = {{"eager", ExecutionMode::eager},
                                                   {"compiled", ExecutionMode::compiled},
                                                   {"cuda_graph", ExecutionMode::cuda_graph}};
  return words;
}

std::span<const Named<SyncAlgorithm>> algorithm_words() {
  static constexpr Named<SyncAlgorithm> words[] = {
      {"auto", SyncAlgorithm::automatic},
      {"naive", SyncAlgorithm::naive},
      {"tree", SyncAlgorithm::tree},
      {"double_tree", SyncAlgorithm::double_tree},
      {"ring", SyncAlgorithm::ring},
      {"bidirectional_ring", SyncAlgorithm::bidirectional_ring},
      {"halving_doubling", SyncAlgorithm::halving_doubling},
      {"hierarchical", SyncAlgorithm::hierarchical},
      {"parameter_server", SyncAlgorithm::parameter_server},
      {"multi_ring", SyncAlgorithm::multi_ring},
      {"hierarchical_leader", SyncAlgorithm::hierarchical_leader},
      {"pairwise", SyncAlgorithm::pairwise},
      {"in_network", SyncAlgorithm::in_network},
      {"hierarchical_parameter_server", SyncAlgorithm::hierarchical_parameter_server}};
  return words;
}

std::span<const Named<ServerPlacement>> placement_words() {
  static constexpr Named<ServerPlacement> words[] = {{"cpu", ServerPlacement::cpu},
                                                     {"gpu", ServerPlacement::gpu},
                                                     {"dedicated", ServerPlacement::dedicated},
                                                     {"colocated", ServerPlacement::colocated}};
  return words;
}

std::span<const Named<Sync::Assignment>> assignment_words() {
  static constexpr Named<Sync::Assignment> words[] = {{"balanced", Sync::Assignment::balanced},
                                                      {"hashed", Sync::Assignment::hashed}};
  return words;
}

std::span<const Named<Sync::Priority>> priority_words() {
  static constexpr Named<Sync::Priority> words[] = {{"arrival", Sync::Priority::arrival},
                                                    {"first_layer", Sync::Priority::first_layer}};
  return words;
}

std::span<const Named<CollectiveOperation>> operation_words() {
  static constexpr Named<CollectiveOperation> words[] = {{"all_reduce", CollectiveOperation::all_reduce},
                                                         {"all_gather", CollectiveOperation::all_gather},
                                                         {"reduce_scatter", CollectiveOperation::reduce_scatter},
                                                         {"broadcast", CollectiveOperation::broadcast},
                                                         {"reduce", CollectiveOperation::reduce},
                                                         {"all_to_all", CollectiveOperation::all_to_all},
                                                         {"send_receive", CollectiveOperation::send_receive}};
  return words;
}

std::span<const Named<RankGrouping>> layout_words() {
  static constexpr Named<RankGrouping> words[] = {{"blocked", RankGrouping::blocked},
                                                  {"strided", RankGrouping::strided}};
  return words;
}

std::span<const Named<TransformerFamily>> transformer_family_words() {
  static constexpr Named<TransformerFamily> words[] = {{"gpt", TransformerFamily::gpt},
                                                       {"bert", TransformerFamily::bert},
                                                       {"mpt", TransformerFamily::mpt},
                                                       {"llama", TransformerFamily::llama},
                                                       {"vit", TransformerFamily::vit}};
  return words;
}

}  // namespace foretrain

// When a key means something: plans and trainings to which a framework's setting does, and reasons why a key that is
// stated changes nothing. Rows of the tables name these (Key::framework, Key::ignored).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <variant>

#include "model/cost/attention.hpp"
#include "model/hardware/cluster.hpp"
#include "model/parallelism/layout.hpp"
#include "model/parallelism/plan.hpp"
#include "model/scenario/keys/key.hpp"
#include "model/workload/training.hpp"
#include "model/workload/transformer_parameters.hpp"

namespace foretrain::keys {

using Of = const Situation&;

inline bool is_transformer(Of one) { return !std::holds_alternative<NetworkConfig>(one.train->model.shape); }
inline bool on_processors(Of one) { return one.cluster.node.gpu.processor.has_value(); }
inline bool has_fp32_weights(Of one) {
  return bytes_per_element(storage_precision(one.train->precision)) == bytes_per_element(Precision::fp32);
}

// Settings of frameworks.

inline constexpr FrameworkSetting everywhere{[](Of) { return true; }};
inline constexpr FrameworkSetting to_servers{[](Of one) { return has_servers(one.plan.sync.algorithm); }};
inline constexpr FrameworkSetting to_transformers{is_transformer};
// Processors have plain kernels alone. What plain kernels do otherwise hangs on it.
inline constexpr FrameworkSetting to_transformers_on_gpus{
    [](Of one) { return is_transformer(one) && !on_processors(one); }, false, true};
inline constexpr FrameworkSetting to_plain_kernels{
    [](Of one) {
      return !on_processors(one) && (!is_transformer(one) || one.train->code.kernels == KernelSet::unfused);
    },
    true};
// Networks of layers, on GPUs.
inline constexpr FrameworkSetting to_networks{[](Of one) { return !is_transformer(one) && !on_processors(one); }};
// Ranks that divide the sequence, whose gathers and scatters could overlap GEMMs.
inline constexpr FrameworkSetting to_tensor_ranks{
    [](Of one) { return one.plan.tensor > 1 && one.plan.sequence_parallel; }, true};
inline constexpr FrameworkSetting to_pipelines{[](Of one) { return one.plan.pipeline > 1; }, true};
inline constexpr FrameworkSetting to_context_ranks{[](Of one) { return one.plan.context > 1; }};
inline constexpr FrameworkSetting to_experts{[](Of one) { return one.train->model.has_experts(); }};
inline constexpr FrameworkSetting to_divided_gradients{[](Of one) { return one.plan.zero == 2; }, true};
// Gradients that ZeRO-1's ranks, or ZeRO-2's which keep them whole, sum up.
inline constexpr FrameworkSetting to_divided_states{
    [](Of one) { return one.plan.zero == 1 || (one.plan.zero == 2 && one.plan.zero_gradients == ZeroGradients::kept); },
    true};
// ZeRO-1's and 2's, whose weights come back to all ranks.
inline constexpr FrameworkSetting to_updated_parts{[](Of one) { return one.plan.zero == 1 || one.plan.zero == 2; },
                                                   true};
// Fewer than four bytes each, updated in fp32.
inline constexpr FrameworkSetting to_short_weights{
    [](Of one) { return !has_fp32_weights(one) && !has_8bit_states(one.train->optimizer); }, true};
inline constexpr FrameworkSetting to_adapters{[](Of one) { return one.train->parts.lora.has_value(); }};

// Keys of the cluster that change nothing.

/// Gradients alone cross machines.
inline bool sends_gradients_alone(Of one) {
  const Plan& plan = one.plan;
  return one.train != nullptr && one.is_alone && plan.pipeline * plan.expert == 1 &&
         plan.tensor * plan.context <= one.cluster.gpus_per_node;
}
inline bool sends_to_servers_alone(Of one) {
  return sends_gradients_alone(one) && servers_update(one.plan) && one.plan.tensor * one.plan.context == 1;
}
inline constexpr Ignored one_machine{"one machine sends nothing over a network", [](Of one) {
                                       const bool stores =
                                           one.train != nullptr && (one.train->loader || one.train->checkpoint);
                                       return one.cluster.nodes == 1 && one.is_alone && !stores;
                                     }};
inline constexpr Ignored gradients_alone{"gradients meet no other traffic between machines", sends_gradients_alone};
inline constexpr Ignored servers_add{"servers add the gradients up", sends_to_servers_alone};
inline constexpr Ignored servers_alone{"gradients go to servers, which no library does", sends_to_servers_alone};
inline constexpr Ignored one_gpu{"one GPU has no peer to send to", [](Of one) { return one.cluster.gpus() == 1; }};

// Keys of synchronisation.

inline constexpr Ignored collective_alone{"a collective takes only algorithm, levels, servers and placement",
                                          [](Of one) { return one.train == nullptr; }};
inline constexpr Ignored one_replica{
    "one replica synchronises nothing",
    [](Of one) { return one.train != nullptr && replicas_of(one.plan) == 1 && !servers_update(one.plan); }};
inline constexpr Ignored key_by_key{"a parameter server is sent gradients key by key (plan.sync.split)",
                                    [](Of one) { return servers_update(one.plan); }};
inline constexpr Ignored layer_by_layer{"ZeRO-3 sends the gradients of each layer by themselves",
                                        [](Of one) { return one.plan.zero == 3; }};
inline constexpr Ignored scatters_always{"ZeRO-{zero} scatters the gradients of every micro-batch", [](Of one) {
                                           return divides_gradients(one.plan) && !one.plan.sync.sync_each_micro_batch;
                                         }};
inline constexpr Ignored adds_its_part{"ZeRO-{zero} adds up its own part of the gradients alone", [](Of one) {
                                         return divides_gradients(one.plan) && one.plan.sync.fp32_accumulation;
                                       }};
inline constexpr Ignored no_updated_parts{"ZeRO-{zero} has no updated weights that come back",
                                          [](Of one) { return one.plan.zero != 1 && one.plan.zero != 2; }};
inline constexpr Ignored one_micro_batch{"one micro-batch is not added to others",
                                         [](Of one) { return micro_batches(*one.train, one.plan) == 1; }};

// Keys of plans.

inline constexpr Ignored nodes_alike{"all nodes are alike", [](Of one) { return one.cluster.groups.empty(); }};
inline constexpr Ignored one_stage{"a pipeline of one stage", [](Of one) { return one.plan.pipeline == 1; }};
inline constexpr Ignored nothing_offloaded{"nothing is offloaded", [](Of one) { return !one.plan.offload.any(); }};
inline constexpr Ignored nothing_gathered{"weights are not gathered layer by layer",
                                          [](Of one) { return one.plan.zero < 3; }};
inline constexpr Ignored one_dimension{
    "at most one dimension is divided", [](Of one) {
      const std::initializer_list<int> factors = {one.plan.data, one.plan.tensor, one.plan.pipeline, one.plan.context,
                                                  one.plan.expert};
      return std::ranges::count_if(factors, [](int factor) { return factor > 1; }) < 2;
    }};
inline constexpr Ignored one_context_rank{"no sequence is divided among context ranks",
                                          [](Of one) { return one.plan.context == 1; }};
inline constexpr Ignored whole_sequence{"tensor: 1 divides no sequence",
                                        [](Of one) { return one.plan.tensor == 1 && one.plan.sequence_parallel; }};
inline constexpr Ignored no_experts{"the model has no experts", [](Of one) { return !one.train->model.has_experts(); }};
inline constexpr Ignored not_eager{"execution {execution} launches no kernel by itself",
                                   [](Of one) { return one.plan.execution != ExecutionMode::eager; }};

// Keys of trainings.

/// Null for models that are no single transformer.
inline const TransformerConfig* transformer_of(Of one) {
  return std::get_if<TransformerConfig>(&one.train->model.shape);
}
inline bool gathers_inputs(Of one) { return one.plan.tensor > 1 && one.plan.sequence_parallel; }
inline constexpr Ignored one_tensor_rank{"one tensor rank has no others", [](Of one) { return one.plan.tensor == 1; }};
inline constexpr Ignored servers_hold{"the servers hold what the optimizer needs",
                                      [](Of one) { return servers_update(one.plan); }};
inline constexpr Ignored servers_update_weights{"the servers update the weights",
                                                [](Of one) { return servers_update(one.plan); }};
inline constexpr Ignored fp32_weights{"the weights are in fp32 themselves", has_fp32_weights};
inline constexpr Ignored used_in_fp32{"the weights are used in fp32 themselves", has_fp32_weights};
inline constexpr Ignored nothing_recomputed{"nothing is recomputed",
                                            [](Of one) { return one.train->recompute == Recompute::none; }};
inline constexpr Ignored not_recomputed_whole{"no layer is recomputed as a whole",
                                              [](Of one) { return one.train->recompute != Recompute::full; }};
inline constexpr Ignored one_projection{"the model's code has one projection", [](Of one) {
                                          const TransformerConfig* shape = transformer_of(one);
                                          return shape != nullptr && shape->family == TransformerFamily::gpt &&
                                                 !shape->gated_ffn;
                                        }};
inline constexpr Ignored all_fused{
    "fused kernels do all of that",
    [](Of one) { return transformer_of(one) != nullptr && one.train->code.kernels == KernelSet::fused; }};
inline constexpr Ignored no_native_kernels{"the GPUs have no attention kernels of their own generation", [](Of one) {
                                             const TransformerConfig* shape = transformer_of(one);
                                             Attention work;
                                             work.kind = one.train->attention;
                                             work.biased = shape != nullptr && shape->family == TransformerFamily::mpt;
                                             const Precision kept = storage_precision(one.train->precision);
                                             return attention_kernel(work, kept, one.cluster.node.gpu) !=
                                                    AttentionKind::flash;
                                           }};
inline constexpr Ignored no_causal_pieces{
    "no causal sequence is divided among context ranks", [](Of one) {
      const TransformerConfig* shape = transformer_of(one);
      const bool unequal = shape == nullptr || (is_causal(shape->family) && shape->window == 0);
      return one.plan.context == 1 || !unequal || one.plan.context_method == ContextMethod::ulysses;
    }};
inline constexpr Ignored no_fp8_gathers{"tensor ranks gather no fp8 operands", [](Of one) {
                                          return !gathers_inputs(one) || one.train->precision != Precision::fp8;
                                        }};
inline constexpr Ignored no_gathers{"tensor ranks gather no inputs", [](Of one) { return !gathers_inputs(one); }};
inline constexpr Ignored no_shifted_copies{
    "a fused loss and one in parts make no copies, and masked words are not shifted", [](Of one) {
      const TransformerConfig* shape = transformer_of(one);
      return one.train->code.loss.kind != Loss::Kind::eager || (shape != nullptr && !is_causal(shape->family));
    }};
inline constexpr Ignored no_loss_copies{
    "a fused loss makes no copies",
    [](Of one) { return one.train->code.loss.fused(one.plan.execution == ExecutionMode::compiled); }};
inline constexpr Ignored states_decided{"states are fp32 with fp32 weights, or 8 bits", [](Of one) {
                                          const TrainWorkload& train = *one.train;
                                          return train.master_weights || train.code.cache_cast_weights ||
                                                 has_8bit_states(train.optimizer);
                                        }};
inline constexpr Ignored eight_bits{"states are in 8 bits",
                                    [](Of one) { return has_8bit_states(one.train->optimizer); }};
inline constexpr Ignored no_adapters{"no adapters are trained",
                                     [](Of one) { return !one.train->parts.lora.has_value(); }};

}  // namespace foretrain::keys

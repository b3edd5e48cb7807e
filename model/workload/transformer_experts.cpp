// Feed-forward halves that are a mixture of experts, as Megatron-Core carries them out (megatron/core/transformer/moe):
//
//   router · choice of experts · permutation · all-to-all · [gather over tensor ranks] · [order by expert] ·
//   grouped products · [order by rank] · [scatter over tensor ranks] · all-to-all · sum over a token's experts
//
// Under sequence parallelism a tensor rank routes its own part of the tokens; what an expert gets is gathered over the
// tensor ranks among which its matrices are divided. Otherwise every tensor rank routes all tokens. Folded experts lie
// whole on one tensor rank each: nothing is gathered.

#include <algorithm>
#include <cmath>

#include "model/base/number.hpp"
#include "model/workload/block_builder.hpp"

namespace foretrain {

namespace {

// Operations of Megatron-Core's router, each over a score for every token and expert. Forward (router.py and
// moe_utils.py, topk_routing_with_score_function, compute_routing_scores_for_aux_loss, switch_load_balancing_loss): the
// largest scores, their softmax, their places as weights and as a map, the same once more for the loss that balances
// loads, that loss and its record. Backward: what the loss and the two softmaxes hand back. Counted by hand.
constexpr int routing_kernels = 22, routing_backward_kernels = 12;
// Tokens for each expert, summed up, gathered from all ranks, added up by source and by expert, and copied to the host
// (token_dispatcher.py, preprocess). Counted by hand.
constexpr int counting_kernels = 9;
// Placing tokens takes three kernels beside the one that moves them (Transformer Engine, permutation.py).
constexpr int placing_kernels = 3;

}  // namespace

/// Rows that are looked up and written elsewhere, with as much traffic backward.
void BlockBuilder::move_tokens(Layer& layer, const std::string& name, double elements, double reads,
                               double writes) const {
  stream(layer, name, StreamingKind::gather, elements, reads, writes, writes, reads);
}

/// There and back: to the ranks that hold the experts, and over the tensor ranks that share one.
void BlockBuilder::exchange_tokens(Layer& layer, double routed, double gathered) const {
  using enum CollectiveOperation;
  using Group = LayerCollective::Group;
  const auto both = [&](CollectiveOperation operation, Group group, double elements, bool combines = false) {
    LayerCollective call{operation, group, element_ * elements};
    call.combines = combines;
    if (operation == all_to_all) {
      call.copies = static_cast<int>(config_.experts_per_token);
      // With a capacity every expert's part is as full as it may be; else the hottest one's is.
      if (config_.expert_capacity > 0.0) {
        call.size *= config_.expert_capacity;
      } else {
        call.imbalance = config_.expert_imbalance;
      }
    }
    layer.forward_collectives.push_back(call);
    layer.backward_collectives.push_back(call);
  };
  if (options_.expert > 1 || options_.folded_experts) {
    for (const bool combines : {false, true}) both(all_to_all, Group::expert, routed, combines);
  }
  if (options_.tensor == 1 || options_.folded_experts) return;
  if (options_.sequence_parallel) {
    both(all_gather, Group::tensor, gathered);
    both(reduce_scatter, Group::tensor, gathered);
  } else {
    both(all_reduce, Group::tensor, number(tokens_) * number(config_.hidden));
  }
}

void BlockBuilder::route_tokens(Layer& layer, std::int64_t tokens) const {
  linear(layer, "router", tokens, config_.experts, config_.hidden, activations_);
  layer.matrices.push_back({config_.experts, config_.hidden});
  const auto scored = [&](const char* name, int kernels) {
    const Bytes scores =
        bytes_per_element(Precision::fp32) * (number(tokens) * number(config_.experts) * number(kernels));
    return Operator{name, Streaming{StreamingKind::reduction, scores, scores, Flops(0.0), false}, Precision::fp32,
                    kernels};
  };
  layer.forward.push_back(scored("routing", routing_kernels));
  layer.backward.push_back(scored("routing backward", routing_backward_kernels));
  if (!layer.reads_counts) return;
  const Bytes map = number(tokens) * number(config_.experts) * Bytes(1.0);
  layer.forward.push_back({"token counts", Streaming{StreamingKind::reduction, map, Bytes(0.0), Flops(0.0), false},
                           Precision::fp32, counting_kernels});
}

void BlockBuilder::experts_half(Layer& layer) const {
  const auto& c = config_;
  const auto own = static_cast<std::int64_t>(norm_tokens());                 // that this rank routes
  const std::int64_t whole = options_.folded_experts ? options_.tensor : 1;  // on different tensor ranks
  const std::int64_t local = std::max<std::int64_t>(c.experts / (options_.expert * whole), 1);
  const double mean_rows = number(tokens_ / whole) * number(c.experts_per_token) / number(local);
  const auto rows = std::max<std::int64_t>(std::llround(mean_rows * c.expert_load()), 1);
  const double routed = number(own) * number(c.experts_per_token) * number(c.hidden);
  const double received = number(rows) * number(local) * number(c.hidden);
  const bool sorted =
      (options_.expert > 1 || whole > 1) && local > 1;  // tokens from several ranks, for several experts

  layer.routes_tokens = true;
  layer.reads_counts = c.expert_capacity == 0.0;  // else every expert has as many rows, filled or not
  norm(layer, "ffn norm");
  Marker part(layer);
  route_tokens(layer, own);
  part.mark(LayerPart::router);

  move_tokens(layer, "token permutation", routed, 1, 1);
  layer.forward.back().kernels += placing_kernels;
  part.mark(LayerPart::rest);
  if (sorted) move_tokens(layer, "order by expert", received, 1, 1);
  // Products in fewer bits take rows in multiples of 16 or more: Megatron-Core copies each expert's rows apart before
  // them and together behind them (transformer/moe/experts.py: quantization_padding and quantization_unpadding; their
  // kernel, Transformer Engine's padding.cu, needs the counts on the host). In a graph the router pads
  // (moe_router_padding_for_quantization).
  const bool aligns = options_.code.casts_in_modules(options_.precision) && layer.reads_counts && !options_.in_graph;
  if (aligns) stream(layer, "row padding", StreamingKind::elementwise, received, 1, 1, 1, 1);
  ffn_products(layer, "ffn", rows, c.ffn_hidden * whole / options_.tensor, local, true);
  if (aligns) stream(layer, "row unpadding", StreamingKind::elementwise, received, 1, 1, 1, 1);
  if (sorted) move_tokens(layer, "order by rank", received, 1, 1);
  part.mark(LayerPart::experts);
  move_tokens(layer, "sum over experts", routed, 1, 1.0 / number(c.experts_per_token));
  exchange_tokens(layer, routed, received);
  if (c.shared_experts > 0) {
    ffn_products(layer, "shared ffn", tokens_, c.shared_experts * c.ffn_hidden / options_.tensor, 1, false);
  }
  residual(layer, "ffn residual");
}

}  // namespace foretrain

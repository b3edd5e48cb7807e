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

// Softmax, the largest scores, their positions as a map, and the loss that balances the experts' load; each reads and
// writes one fp32 score for each token and expert (router.py and moe_utils.py, fused): modelling choice.
constexpr int routing_kernels = 4;

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
  const auto both = [&](CollectiveOperation operation, Group group, double elements, int count) {
    LayerCollective call{operation, group, element_ * elements, count, false};
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
  if (options_.expert > 1 || options_.folded_experts) both(all_to_all, Group::expert, routed, 2);
  if (options_.tensor == 1 || options_.folded_experts) return;
  if (options_.sequence_parallel) {
    both(all_gather, Group::tensor, gathered, 1);
    both(reduce_scatter, Group::tensor, gathered, 1);
  } else {
    both(all_reduce, Group::tensor, number(tokens_ * config_.hidden), 1);
  }
}

void BlockBuilder::experts_half(Layer& layer) const {
  const auto& c = config_;
  const auto own = static_cast<std::int64_t>(norm_tokens());                 // that this rank routes
  const std::int64_t whole = options_.folded_experts ? options_.tensor : 1;  // on different tensor ranks
  const std::int64_t local = std::max<std::int64_t>(c.experts / (options_.expert * whole), 1);
  const double mean_rows = number(tokens_ / whole * c.experts_per_token) / number(local);
  const auto rows = std::max<std::int64_t>(std::llround(mean_rows * c.expert_load()), 1);
  const double routed = number(own * c.experts_per_token * c.hidden);
  const double received = number(rows * local * c.hidden);
  const bool sorted =
      (options_.expert > 1 || whole > 1) && local > 1;  // what comes from several ranks, for several experts

  layer.routes_tokens = true;
  norm(layer, "ffn norm");
  linear(layer, "router", own, c.experts, c.hidden, activations_);
  layer.matrices.push_back({c.experts, c.hidden});
  const Bytes scores = bytes_per_element(Precision::fp32) * number(own * c.experts * routing_kernels);
  const Streaming routing{StreamingKind::reduction, scores, scores, Flops(0.0), false};
  layer.forward.push_back({"routing", routing, Precision::fp32, routing_kernels});
  layer.backward.push_back({"routing backward", routing, Precision::fp32, routing_kernels});

  move_tokens(layer, "token permutation", routed, 1, 1);
  if (sorted) move_tokens(layer, "order by expert", received, 1, 1);
  ffn_products(layer, "ffn", rows, c.ffn_hidden * whole / options_.tensor, local, true);
  if (sorted) move_tokens(layer, "order by rank", received, 1, 1);
  move_tokens(layer, "sum over experts", routed, 1, 1.0 / number(c.experts_per_token));
  exchange_tokens(layer, routed, received);
  if (c.shared_experts > 0) {
    ffn_products(layer, "shared ffn", tokens_, c.shared_experts * c.ffn_hidden / options_.tensor, 1, false);
  }
  residual(layer, "ffn residual");
}

}  // namespace foretrain

#include "model/training/layer_cost.hpp"

#include <algorithm>

#include "model/cost/launches.hpp"

namespace foretrain {

namespace {

/// Dispatch runs ahead of the device over a whole pass: what counts is which of the two takes longer in sum.
Segment joined(Seconds kernels, Seconds dispatch, Seconds collectives) {
  const Seconds device = kernels + collectives;
  return {kernels, collectives, std::max(dispatch - device, Seconds(0.0))};
}

CollectiveOperation operation_of(LayerCollective::Kind kind) {
  switch (kind) {
    case LayerCollective::Kind::all_reduce:
      return CollectiveOperation::all_reduce;
    case LayerCollective::Kind::all_gather:
      return CollectiveOperation::all_gather;
    case LayerCollective::Kind::reduce_scatter:
      return CollectiveOperation::reduce_scatter;
    case LayerCollective::Kind::all_to_all:
      return CollectiveOperation::all_to_all;
    case LayerCollective::Kind::send_receive:
      return CollectiveOperation::send_receive;
  }
  return CollectiveOperation::all_reduce;
}

}  // namespace

LayerCost& LayerCost::operator+=(const LayerCost& other) {
  forward_kernels += other.forward_kernels;
  backward_kernels += other.backward_kernels;
  forward_dispatch += other.forward_dispatch;
  backward_dispatch += other.backward_dispatch;
  forward_collectives += other.forward_collectives;
  backward_collectives += other.backward_collectives;
  recompute_kernels += other.recompute_kernels;
  recompute_dispatch += other.recompute_dispatch;
  recompute_collectives += other.recompute_collectives;
  return *this;
}

LayerCost operator*(LayerCost cost, double n) {
  for (Seconds* part : {&cost.forward_kernels, &cost.backward_kernels, &cost.forward_dispatch, &cost.backward_dispatch,
                        &cost.forward_collectives, &cost.backward_collectives, &cost.recompute_kernels,
                        &cost.recompute_dispatch, &cost.recompute_collectives}) {
    *part *= n;
  }
  return cost;
}

Segment LayerCost::forward() const { return joined(forward_kernels, forward_dispatch, forward_collectives); }

Segment LayerCost::backward() const {
  return joined(backward_kernels + recompute_kernels, backward_dispatch + recompute_dispatch,
                backward_collectives + recompute_collectives);
}

int representative_window(const Topology& topology, int group_size) {
  return std::max(topology.gpus_per_node(), group_size);
}

LayerPricer::LayerPricer(const Scenario& scenario, const TrainWorkload& train, const Topology& topology,
                         Recipes recipes)
    : scenario_(scenario), train_(train), topology_(topology), layout_(scenario.plan), recipes_(recipes) {}

RecipePointer LayerPricer::recipe(const std::vector<Operator>& ops) const {
  if (!keeps_recipes() || ops.empty()) return nullptr;
  return std::make_shared<const Recipe>(
      kernels_of(ops, scenario_.plan.execution, scenario_.calibration.step.kernel_stretch, scenario_.cluster.node.gpu,
                 scenario_.calibration));
}

/// Operators that run again in the backward pass.
const std::vector<Operator>& LayerPricer::recomputed(const Layer& layer) const {
  static const std::vector<Operator> nothing;
  switch (train_.recompute) {
    case Recompute::full:
      return layer.recomputable ? layer.forward : nothing;
    case Recompute::selective:
      return layer.selective_recompute;
    case Recompute::selective_operators:
      return layer.operators_recompute;
    case Recompute::none:
      break;
  }
  return nothing;
}

std::vector<Operator> LayerPricer::backward_operators(const Layer& layer) const {
  std::vector<Operator> ops = recomputed(layer);
  ops.insert(ops.end(), layer.backward.begin(), layer.backward.end());
  return ops;
}

Seconds LayerPricer::kernels(const std::vector<Operator>& ops) const {
  return launch_totals(ops, scenario_.plan.execution, scenario_.cluster.node.gpu, scenario_.calibration).device *
         scenario_.calibration.step.kernel_stretch;
}

Seconds LayerPricer::dispatch(const std::vector<Operator>& ops) const {
  const Seconds host =
      launch_totals(ops, scenario_.plan.execution, scenario_.cluster.node.gpu, scenario_.calibration).host;
  // One process that drives all GPUs of a node dispatches for each of them in turn (Python holds one lock).
  const int drivers = scenario_.plan.single_process ? std::min(topology_.gpus_per_node(), scenario_.plan.data) : 1;
  return host * static_cast<double>(drivers);
}

Seconds LayerPricer::collective(const LayerCollective& call) {
  const Plan& plan = scenario_.plan;
  CollectiveCall lowered_call;
  lowered_call.operation = operation_of(call.kind);
  lowered_call.size = call.size;
  switch (call.group) {
    case LayerCollective::Group::tensor:
      lowered_call.groups = layout_.tensor_groups(0, representative_window(topology_, plan.tensor));
      break;
    case LayerCollective::Group::context:
      lowered_call.groups = layout_.context_groups(0, representative_window(topology_, plan.tensor * plan.context));
      break;
    case LayerCollective::Group::expert:
      lowered_call.groups =
          layout_.expert_groups(0, representative_window(topology_, plan.tensor * plan.context * plan.expert));
      break;
  }
  const LoweredCollective lowered = lower(lowered_call, topology_, scenario_.calibration);
  return uncontended_time(lowered, topology_) * static_cast<double>(call.count);
}

LayerCost LayerPricer::price(const Layer& layer) {
  LayerCost cost;
  cost.forward_kernels = kernels(layer.forward);
  cost.forward_dispatch = dispatch(layer.forward);
  cost.backward_kernels = kernels(layer.backward);
  cost.backward_dispatch = dispatch(layer.backward);
  const double slowdown = scenario_.calibration.collective.overlap_slowdown;

  // A collective that can run beside kernels hides behind them, but takes some of their speed.
  const auto collectives = [&](const std::vector<LayerCollective>& calls, Seconds kernel_time) {
    Seconds exposed;
    Seconds beside;
    for (const LayerCollective& call : calls) {
      const Seconds time = collective(call);
      (call.overlappable ? beside : exposed) += time;
    }
    const Seconds hidden = std::min(beside, kernel_time * 0.5);  // the kernels that do not depend on it: about half
    return exposed + (beside - hidden) + hidden * slowdown;
  };
  cost.forward_collectives = collectives(layer.forward_collectives, cost.forward_kernels);
  cost.backward_collectives = collectives(layer.backward_collectives, cost.backward_kernels);

  const std::vector<Operator>& again = recomputed(layer);
  if (&again == &layer.forward) {
    cost.recompute_kernels = cost.forward_kernels;
    cost.recompute_dispatch = cost.forward_dispatch;
    cost.recompute_collectives = cost.forward_collectives;
    if (scenario_.plan.zero == 3) {
      // FSDP's layers are checkpointed by PyTorch, which stops as soon as all saved tensors are there again
      // (torch.utils.checkpoint, set_checkpoint_early_stop); Megatron-LM runs the whole layer again.
      const std::vector<Operator> tail(layer.forward.end() - static_cast<std::ptrdiff_t>(layer.unread_tail),
                                       layer.forward.end());
      cost.recompute_kernels -= kernels(tail);
      cost.recompute_dispatch -= dispatch(tail);
    }
  } else {
    cost.recompute_kernels = kernels(again);
    cost.recompute_dispatch = dispatch(again);
  }
  return cost;
}

}  // namespace foretrain

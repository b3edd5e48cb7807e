#include "model/training/layer_cost.hpp"

#include <algorithm>

#include "model/cost/launches.hpp"

namespace foretrain {

namespace {

constexpr double hiding_share = 0.5;  // of a layer's kernels: those that do not depend on a collective beside them

/// Dispatch runs ahead of the device over a whole pass: what counts is which of the two takes longer in sum.
Segment joined(Seconds kernels, Seconds dispatch, Seconds collectives) {
  const Seconds device = kernels + collectives;
  return {kernels, collectives, std::max(dispatch - device, Seconds(0.0))};
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

LayerPricer::LayerPricer(const Scenario& scenario, const TrainWorkload& train, const Topology& topology,
                         Recipes recipes)
    : scenario_(scenario), train_(train), topology_(topology), recipes_(recipes) {}

RecipePointer LayerPricer::recipe(const std::vector<Operator>& ops) const {
  if (!keeps_recipes() || ops.empty()) return nullptr;
  return std::make_shared<const Recipe>(kernels_of(ops, scenario_.plan.execution,
                                                   scenario_.calibration.step.kernel_stretch,
                                                   scenario_.cluster.node.gpu, scenario_.calibration));
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

LayerCost LayerPricer::price(const Layer& layer) const {
  LayerCost cost;
  cost.forward_kernels = kernels(layer.forward);
  cost.forward_dispatch = dispatch(layer.forward);
  cost.backward_kernels = kernels(layer.backward);
  cost.backward_dispatch = dispatch(layer.backward);
  const std::vector<Operator>& again = recomputed(layer);
  if (&again == &layer.forward) {
    cost.recompute_kernels = cost.forward_kernels;
    cost.recompute_dispatch = cost.forward_dispatch;
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

LayerCalls LayerPricer::calls(const Layer& layer, int stage, TransferTable& transfers) const {
  const auto lowered = [&](const std::vector<LayerCollective>& collectives) {
    std::vector<LayerCalls::Call> calls;
    for (const LayerCollective& call : collectives) {
      calls.push_back({transfers.inside_layer(stage, call), call.count, call.overlappable});
    }
    return calls;
  };
  LayerCalls calls{lowered(layer.forward_collectives), {}};
  if (&recomputed(layer) == &layer.forward) calls.backward = calls.forward;
  const std::vector<LayerCalls::Call> own = lowered(layer.backward_collectives);
  calls.backward.insert(calls.backward.end(), own.begin(), own.end());
  return calls;
}

LayerCost LayerPricer::on_lane(LayerCost cost, const LayerCalls& calls, const Layer& layer, double speed, int lane,
                               const TransferTable& transfers) const {
  for (Seconds* kernels : {&cost.forward_kernels, &cost.backward_kernels, &cost.recompute_kernels}) *kernels /= speed;
  const double slowdown = scenario_.calibration.collective.overlap_slowdown;
  // A collective that can run beside kernels hides behind them, but takes some of their speed.
  const auto exposed = [&](auto begin, auto end, Seconds kernels) {
    Seconds waited;
    Seconds beside;
    for (auto call = begin; call != end; ++call) {
      (call->beside ? beside : waited) += transfers.time(call->transfer, lane) * static_cast<double>(call->count);
    }
    const Seconds hidden = std::min(beside, kernels * hiding_share);
    return waited + (beside - hidden) + hidden * slowdown;
  };
  cost.forward_collectives = exposed(calls.forward.begin(), calls.forward.end(), cost.forward_kernels);
  const bool again = &recomputed(layer) == &layer.forward;
  const auto own = calls.backward.begin() + (again ? static_cast<std::ptrdiff_t>(calls.forward.size()) : 0);
  cost.backward_collectives = exposed(own, calls.backward.end(), cost.backward_kernels);
  if (again) cost.recompute_collectives = cost.forward_collectives;
  return cost;
}

void append_pieces(std::vector<Piece>& pieces, Seconds work, const std::vector<LayerCalls::Call>& calls, double from,
                   double to) {
  int waited = 0, beside = 0;
  for (const LayerCalls::Call& call : calls) (call.beside ? beside : waited) += call.count;
  // Each call as the moment at which the piece with it ends.
  std::vector<std::pair<double, LayerCalls::Call>> ends;
  for (const LayerCalls::Call& call : calls) {
    for (int i = 0; i < call.count; ++i) ends.emplace_back(0.0, call);
  }
  int waited_so_far = 0, beside_so_far = 0;
  for (auto& [moment, call] : ends) {
    moment = call.beside ? hiding_share * ++beside_so_far / beside : 1.0 * ++waited_so_far / waited;
  }
  std::ranges::stable_sort(ends, {}, [](const auto& end) { return end.first; });
  double at = from;
  for (const auto& [moment, call] : ends) {
    if (moment <= from || moment > to) continue;
    pieces.push_back({work * (moment - at), call.transfer, call.beside});
    at = moment;
  }
  if (at < to) pieces.push_back({work * (to - at)});
}

void stretch_pieces(std::vector<Piece>& pieces, Seconds work) {
  Seconds sum;
  for (const Piece& piece : pieces) sum += piece.work;
  if (!(sum > Seconds(0.0))) return;
  for (Piece& piece : pieces) piece.work *= work / sum;
}

}  // namespace foretrain

// Bounds of a plan's step by its passes: alone, in their order, and with what comes after them.
#include <algorithm>
#include <utility>

#include "model/base/number.hpp"
#include "model/parallelism/layout.hpp"
#include "model/planning/even_transfers.hpp"
#include "model/planning/plan_blocks.hpp"
#include "model/training/offload.hpp"

namespace foretrain {

/// Null where there are too many passes.
const PipelineWalk* PlanBlocks::walk() {
  const Plan& plan = scenario_.plan;
  const std::tuple key{costed(own_weights()), plan.interleave, plan.schedule};
  auto known = walks_.find(key);
  if (known == walks_.end()) {
    known = walks_.emplace(key, walk_of(plan, micro_batches(train(), plan), pass_times(own_weights()))).first;
  }
  return known->second ? &*known->second : nullptr;
}

Seconds PlanBlocks::bound_by(const PipelineParts& parts) const {
  return pipeline_bound(scenario_.plan, micro_batches(train(), scenario_.plan), parts);
}

/// By position; null where the optimizer's states stay on the GPU, and under ZeRO-1 and 2, whose steps wait for updated
/// weights instead.
const std::vector<Seconds>* PlanBlocks::gradients_to_host() {
  const Plan& plan = scenario_.plan;
  if (!plan.offload.optimizer || plan.zero == 1 || plan.zero == 2) return nullptr;
  const bool both_ends = plan.schedule == PipelineSchedule::dualpipe;
  const std::tuple key{plan.interleave, plan.zero, both_ends};
  auto known = to_host_.find(key);
  if (known == to_host_.end()) {
    std::vector<Seconds> copies;
    if (!host_bandwidth_) host_bandwidth_ = offload_bandwidth(space_.topology());
    const Bytes gradient = bytes_per_element(plan.sync.gradient_precision);
    for (const std::vector<LayerRun>& chunk : chunks()) {
      double parameters = 0.0, in_experts = 0.0;
      for (const LayerRun& run : chunk) {
        parameters += model().layers[at_index(run.group)].layer.parameters * run.count;
        in_experts += model().layers[at_index(run.group)].layer.expert_parameters * run.count;
      }
      if (plan.zero >= 1) parameters = parameters_of_shard(plan, parameters, in_experts);
      copies.push_back(parameters * gradient / *host_bandwidth_);
    }
    known = to_host_.emplace(key, std::move(copies)).first;
  }
  return &known->second;
}

template <typename Bound>
Seconds PlanBlocks::least_of_both(bool both, const Bound& bound) {
  if (!both) return bound();
  const bool chunked = std::exchange(scenario_.plan.tensor_overlap, true);
  const Seconds hidden = bound();
  scenario_.plan.tensor_overlap = false;
  const Seconds least = std::min(hidden, bound());
  scenario_.plan.tensor_overlap = chunked;
  return least;
}

Seconds PlanBlocks::order_bound() {
  return least_of_both(scenario_.plan.tensor_overlap, [&] {
    return bound_by({pass_times(own_weights()), walk(), nullptr, gradients_to_host()});
  });
}

Seconds PlanBlocks::passes_bound(bool any_sharding) {
  const Plan& plan = scenario_.plan;
  return least_of_both(any_sharding ? plan.sequence_parallel : plan.tensor_overlap, [&] {
    if (any_sharding) return bound_by({pass_times(Weights::any)});
    return bound_by({pass_times(own_weights()), nullptr, nullptr, gradients_to_host()});
  });
}

/// Nothing where more than blocks say how long a step takes.
std::optional<StepEnds> PlanBlocks::ends() {
  const bool one_way = point_.schedule == PipelineSchedule::gpipe ||
                       (point_.schedule == PipelineSchedule::zero_bubble && point_.interleave == 1);
  const PipelineSchedule alike = one_way ? PipelineSchedule::one_forward_one_backward : point_.schedule;
  Plan& plan = scenario_.plan;
  const std::tuple key{alike,          point_.interleave, plan.offload.optimizer, zero_in_time(plan.zero),
                       point_.servers, point_.algorithm,  point_.placement,       habits()};
  const bool overlap = std::exchange(plan.sync.overlap, true);
  auto known = ends_.find(key);
  if (known == ends_.end()) {
    // Telling ranks apart takes longest, and mostly finds that all of a stage are alike.
    const bool undisturbed = scenario_.cluster.faults.empty() && scenario_.background.empty();
    std::optional<Step> step = blocks(undisturbed ? Symmetry::assumed : Symmetry::used);
    if (undisturbed && step && !transfers_are_even(*step, space_.topology())) step = blocks();
    if (step) known = ends_.emplace(key, ends_of(*step)).first;
  }
  plan.sync.overlap = overlap;
  if (known == ends_.end()) return std::nullopt;
  StepEnds ends = known->second;
  ends.overlap = overlap;
  return ends;
}

Seconds PlanBlocks::ends_bound(bool any_synchronisation) {
  std::optional<StepEnds> own = ends();
  if (own && any_synchronisation) {
    own->overlap = true;
    for (StepEnds::Stage& stage : own->stages) {
      stage.gradients.clear();
      stage.updated = stage.optimizer;
      stage.first_gather = stage.first_gathers = Seconds(0.0);
    }
  }
  return least_of_both(any_synchronisation && scenario_.plan.tensor_overlap, [&] {
    return bound_by({pass_times(own_weights()), walk(), own ? &*own : nullptr, gradients_to_host()});
  });
}

}  // namespace foretrain

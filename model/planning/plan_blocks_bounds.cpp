// Bounds of a plan's step by its passes: alone, in their order, and with what comes after them.
#include <algorithm>
#include <utility>

#include "model/base/number.hpp"
#include "model/parallelism/layout.hpp"
#include "model/planning/even_transfers.hpp"
#include "model/planning/other_plan.hpp"
#include "model/planning/plan_blocks.hpp"
#include "model/training/pricing/offload.hpp"

namespace foretrain {

/// With its own weights, and its passes in their order.
PlanBlocks::Passes& PlanBlocks::walked_passes() {
  Passes& own = passes(own_weights());
  if (!std::exchange(own.walked, true)) {
    own.walk = walk_of(scenario_.plan, micro_batches(train(), scenario_.plan), own.times);
  }
  return own;
}

/// By position; empty where the optimizer's states stay on the GPU, and under ZeRO-1 and 2, whose steps wait for
/// updated weights instead.
std::vector<Seconds> PlanBlocks::gradients_to_host(const Passes& passes) {
  const Plan& plan = scenario_.plan;
  if (!plan.offload.optimizer || plan.zero == 1 || plan.zero == 2) return {};
  const BytesPerSecond bandwidth = offload_bandwidth(space_.topology());
  const Bytes gradient = bytes_per_element(plan.sync.gradient_precision);
  std::vector<Seconds> copies;
  for (const std::vector<LayerRun>& chunk : passes.chunks) {
    double parameters = 0.0, in_experts = 0.0;
    for (const LayerRun& run : chunk) {
      parameters += model().layers[at_index(run.group)].layer.parameters * run.count;
      in_experts += model().layers[at_index(run.group)].layer.expert_parameters * run.count;
    }
    if (plan.zero >= 1) parameters = parameters_of_shard(plan, parameters, in_experts);
    copies.push_back(parameters * gradient / bandwidth);
  }
  return copies;
}

Seconds PlanBlocks::bound_by(const Passes& passes, const StepEnds* ends) {
  const PipelineWalk* walk = passes.walk ? &*passes.walk : nullptr;
  return pipeline_bound(scenario_.plan, micro_batches(train(), scenario_.plan),
                        {passes.times, walk, ends, gradients_to_host(passes)});
}

template <typename Bound>
Seconds PlanBlocks::least_of_both(bool both, const Bound& bound) {
  if (!both) return bound();
  const auto with = [&](bool tensor_overlap) {
    Plan plan = scenario_.plan;
    plan.tensor_overlap = tensor_overlap;
    const OtherPlan other(scenario_, std::move(plan));
    return bound();
  };
  return std::min(with(true), with(false));
}

Seconds PlanBlocks::order_bound() {
  return least_of_both(scenario_.plan.tensor_overlap, [&] { return bound_by(walked_passes()); });
}

Seconds PlanBlocks::passes_bound(bool any_sharding) {
  const Plan& plan = scenario_.plan;
  return least_of_both(any_sharding ? plan.sequence_parallel : plan.tensor_overlap,
                       [&] { return bound_by(passes(any_sharding ? Weights::any : own_weights())); });
}

/// Nothing where more than blocks say how long a step takes.
std::optional<StepEnds> PlanBlocks::ends() {
  const Timed key = timed_ends();
  auto known = ends_.find(key);
  if (known == ends_.end()) {
    Plan plan = scenario_.plan;
    plan.sync.overlap = true;
    const OtherPlan other(scenario_, std::move(plan));
    // Telling ranks apart takes longest, and mostly finds that all of a stage are alike.
    const bool undisturbed = scenario_.cluster.faults.empty() && scenario_.background.empty();
    std::optional<Step> step = blocks(undisturbed ? Symmetry::assumed : Symmetry::used);
    if (undisturbed && step && !transfers_are_even(*step, space_.topology())) step = blocks();
    if (!step) return std::nullopt;
    known = ends_.emplace(key, ends_of(*step)).first;
  }
  StepEnds ends = known->second;
  ends.overlap = scenario_.plan.sync.overlap;
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
  return least_of_both(any_synchronisation && scenario_.plan.tensor_overlap,
                       [&] { return bound_by(walked_passes(), own ? &*own : nullptr); });
}

}  // namespace foretrain

#include "model/scenario/load/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/parallelism/layout.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

/// Their calibration differs from the GPUs', which that of the first nodes holds for.
void check_processors(const Scenario& scenario) {
  const auto trains = [](const NodeGroup& group) { return group.node.gpu.processor.has_value(); };
  const std::vector<NodeGroup>& groups = scenario.cluster.groups;
  if (std::ranges::none_of(groups, trains)) return;
  const Plan& plan = scenario.plan;
  fail_if(scenario, trains(groups.front()) && !std::ranges::all_of(groups, trains), "cluster.groups",
          "processors that train before GPUs", "the group of GPUs first, or cluster.node");
  if (std::max({plan.tensor, plan.pipeline, plan.context, plan.expert}) > 1 || plan.zero > 0) {
    fail(scenario, "cluster.groups", "processors that train beside other nodes, with a model that is divided",
         "data parallelism alone, or cluster.node");
  }
}

}  // namespace

void check_split(const Scenario& scenario) {
  check_processors(scenario);
  const Plan& plan = scenario.plan;
  if (!plan.split) return;
  fail_if(scenario, plan.pipeline > 1, "plan.split", "micro-batches divided unequally between pipelines",
          "plan.stage_layers: by_speed");
  fail_if(scenario, has_servers(plan.sync.algorithm), "plan.split", "a split with parameter servers",
          "plan.sync.slow_workers, or a collective");
  if (synchronises_every_micro_batch(plan)) {
    fail(scenario, "plan.split", "a split with gradients that are synchronised after every micro-batch",
         divides_gradients(plan) ? "plan.zero: { stage: 2, gradients: kept }" : "plan.sync.every_micro_batch: false");
  }
}

void check_stage_layers(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  if (train == nullptr || plan.stage_layers.empty()) return;
  const Model model = build_model(train->model, build_options(*train, plan));
  int layers = 0;
  for (const LayerGroup& group : model.layers) layers += group.layer.splittable ? group.repeat : 0;
  const int stated = std::accumulate(plan.stage_layers.begin(), plan.stage_layers.end(), 0);
  if (stated == layers) return;
  fail(scenario, "plan.stage_layers", fmt::format("{} layers in all, but the model has {}", stated, layers),
       fmt::format("{} numbers that add up to {}", plan.pipeline, layers));
}

}  // namespace foretrain

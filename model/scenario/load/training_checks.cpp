// Failures, work that is divided by speed, and layers of stages.
#include "model/scenario/load/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "model/parallelism/layout.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

/// A checkpoint is no checkpoint if a part of it is gone with the machine that failed.
void check_outlives_machines(const Scenario& scenario, const Checkpoint& checkpoint) {
  if (checkpoint.mode == Checkpoint::Mode::in_memory || checkpoint.storage.kind == StorageKind::network) return;
  const Failures& failures = *scenario.cluster.failures;
  for (std::size_t i = 0; i < failing_parts; ++i) {
    const auto part = static_cast<FailingPart>(i);
    if (!takes_machine(part) || !is_finite(failures.mtbf[i])) continue;
    fail(scenario, "workload.train.checkpoint.storage",
         std::string("disks in the machines, lost with them when a ") + std::string(name(part)) + " fails",
         "storage over a network, such as object-store (the default), or mode: in_memory");
  }
}

/// Their calibration differs from the GPUs', which that of the first nodes holds for.
void check_processors(const Scenario& scenario) {
  const auto trains = [](const NodeGroup& group) { return group.node.gpu.processor.has_value(); };
  const std::vector<NodeGroup>& groups = scenario.cluster.groups;
  if (std::ranges::none_of(groups, trains)) return;
  const Plan& plan = scenario.plan;
  fail_if(scenario, trains(groups.front()) && !std::ranges::all_of(groups, trains), "cluster.groups",
          "processors that train before GPUs", "the group of GPUs first, or cluster.node");
  fail_if(scenario, std::max({plan.tensor, plan.pipeline, plan.context, plan.expert}) > 1 || plan.zero > 0,
          "cluster.groups", "processors that train beside other nodes, with a model that is divided",
          "data parallelism alone, or cluster.node");
}

}  // namespace

void check_failures(const Scenario& scenario) {
  const bool fails = scenario.cluster.failures.has_value();
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  if (train == nullptr) {
    fail_if(scenario, fails, "cluster.failures", "failures in a scenario that trains nothing",
            "workload: { train: … }");
    return;
  }
  const bool servers = has_servers(scenario.plan.sync.algorithm);
  if (train->checkpoint && train->checkpoint->mode == Checkpoint::Mode::in_memory) {
    fail_if(scenario, scenario.cluster.nodes < 2, "workload.train.checkpoint.mode",
            "a machine without a neighbour to hold its state", "asynchronous or synchronous, or two nodes");
    fail_if(scenario, servers, "workload.train.checkpoint.mode", "servers' state in the memory of other machines",
            "workload.train.recovery: { servers: replicated }");
  }
  if (!fails) {
    fail_if(scenario, train->checkpoint && train->checkpoint->best_interval, "workload.train.checkpoint.every",
            "the best interval without failures", "a number of steps, or cluster.failures");
    return;
  }
  if (train->checkpoint) check_outlives_machines(scenario, *train->checkpoint);
  if (!scenario.jobs.empty()) fail(scenario, "cluster.failures", "failures beside other jobs", "one of the two keys");
  const bool replicated = train->recovery->servers == Recovery::Servers::replicated;
  fail_if(scenario, replicated && !servers, "workload.train.recovery.servers",
          "replicated servers where there are none", "plan.sync.algorithm: parameter_server, or leave the key out");
  if (!train->checkpoint && !replicated) {
    const std::string saved = servers ? ", or workload.train.recovery: { servers: replicated }" : "";
    fail(scenario, "cluster.failures", "failures in a training that saves nothing",
         "workload.train.checkpoint: { every: auto }" + saved);
  }
}

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
         divides_gradients(plan) ? "plan.zero: { stage: 2, gradients: kept }"
                                 : "plan.sync.sync_each_micro_batch: false");
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

#include "reports/cli/plan_aim.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/cli/command.hpp"

namespace foretrain {

namespace {

/// The longest step by which the training stays within the limits on these machines.
Seconds longest_step(const PlanLimits& limits, const Scenario& scenario) {
  Seconds training = limits.time.value_or(Seconds::infinity());
  if (!limits.any()) return training;
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  if (!train.training_samples) {
    throw UsageError(
        "--within and --budget: how long is the training? State workload.train.samples, such as 1 trillion tokens");
  }
  if (limits.usd) {
    const double usd = usd_per_second(scenario.cluster);
    if (!(usd > 0.0)) {
      throw UsageError("--budget: no price; state cluster.price: 2.5 USD/GPU/hour, or --node NAME@2.5");
    }
    training = std::min(training, Seconds(*limits.usd / usd));
  }
  return training * (static_cast<double>(train.global_batch) / *train.training_samples);
}

}  // namespace

double watts_of(const Cluster& cluster) {
  return cluster.node.gpu.board_power_watts * cluster.node.gpus * cluster.nodes;
}
double usd_per_second(const Cluster& cluster) {
  return cluster.usd_per_gpu_hour.value_or(0.0) * cluster.gpus() / 3600.0;
}

PlanObjective objective_of(const PlanAim& aim, const Scenario& scenario) {
  PlanObjective objective{aim.goal};
  const Cluster& cluster = scenario.cluster;
  if (aim.goal == PlanGoal::cost) {
    if (!cluster.usd_per_gpu_hour) {
      throw UsageError("--objective cost: no price; state cluster.price: 2.5 USD/GPU/hour, or --node NAME@2.5");
    }
    objective.per_second = usd_per_second(cluster);
  }
  if (aim.goal == PlanGoal::energy) {
    if (!(watts_of(cluster) > 0.0)) {
      throw UsageError(fmt::format("--objective energy: no board power is known of {}", cluster.node.gpu.name));
    }
    objective.per_second = watts_of(cluster);
  }
  objective.limit = longest_step(aim.limits, scenario);
  return objective;
}

}  // namespace foretrain

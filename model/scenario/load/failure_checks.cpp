#include "model/scenario/load/checks.hpp"

#include <string>

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

}  // namespace foretrain

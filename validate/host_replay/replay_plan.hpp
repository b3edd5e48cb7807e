// From a scenario to what is run: hosts with their rates, and the task of their processes.
#pragma once

#include <vector>

#include "model/scenario/scenario.hpp"
#include "validate/host_replay/namespaces.hpp"
#include "validate/host_replay/worker_processes.hpp"
#include "validate/host_replay/worker_task.hpp"

namespace foretrain {

/// What a replay needs besides the scenario.
struct ReplayOptions {
  HostExecutor executor = HostExecutor::own;
  int repetitions = 0;  ///< 0: as many as take about a second and a half, 3 to 15
  int keys = 0;         ///< server: 0 means one per server
  Seconds predicted;    ///< of one repetition, for repetitions and patience
};

struct ReplayPlan {
  std::vector<HostRate> hosts;
  WorkerTask task;
  std::vector<BackgroundTraffic> background;
};

inline constexpr int most_hosts = 16;

/// Throws ScenarioError at the key that cannot be replayed: something else than an all-reduce or a step of data
/// parallel training (plan_step), more than one rank per node, `auto`, several cards, too many hosts, a message that is
/// no whole number of fp32 values.
ReplayPlan plan_replay(const Scenario& scenario, const ReplayOptions& options);

}  // namespace foretrain

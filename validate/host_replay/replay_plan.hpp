// From a scenario to what is run: hosts with their rates, and the task of their processes.
#pragma once

#include <memory>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "validate/host_replay/namespaces.hpp"
#include "validate/host_replay/step_plan.hpp"
#include "validate/host_replay/worker_task.hpp"

namespace foretrain {

/// What a replay needs besides the scenario.
struct ReplayOptions {
  int repetitions = 0;  ///< 0: as many as take about a second and a half, 3 to 15
  Seconds predicted;    ///< of one repetition, for repetitions and patience
};

/// Traffic from one host to another that goes on while a task runs, over one TCP connection.
struct BackgroundTraffic {
  int from = 0, to = 0;
  BytesPerSecond rate;  ///< at most; zero: as fast as it goes
};

struct ReplayPlan {
  std::vector<HostRate> hosts;
  Uplinks uplinks;
  WorkerTask task;
  std::vector<BackgroundTraffic> background;
  Bytes sent;                                ///< by the rank that sends most, or what is added up
  std::shared_ptr<const StepOfRanks> graph;  ///< of steps whose ranks exchange what they hold
};

inline constexpr int most_hosts = 16;

/// Throws ScenarioError at the key that cannot be replayed: what is neither a collective nor a training step
/// (plan_step), more than one rank per node, `auto` for sums, several cards, too many hosts, a fabric that hosts cannot
/// have, a message that is no whole number of fp32 values.
ReplayPlan plan_replay(const Scenario& scenario, const ReplayOptions& options);

}  // namespace foretrain

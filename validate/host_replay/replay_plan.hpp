// From a scenario to what is run: hosts with their rates, and the task of their processes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "model/training/graph/step_graph.hpp"
#include "validate/host_replay/namespaces.hpp"
#include "validate/host_replay/worker_task.hpp"

namespace foretrain {

/// A step's tasks, and which of them each rank carries out: what its own streams hold, and the exchanges that it takes
/// part in. What it waits for that others do, it learns by these.
struct StepOfRanks {
  Step step;
  StepGraph graph;
  std::vector<std::vector<TaskId>> tasks;  ///< by rank

  /// From when each rank ran its tasks: one that several ranks carry out together begins when the last of them has
  /// come, and ends when the last is done.
  [[nodiscard]] Execution execution(const std::vector<std::vector<TaskSpan>>& spans) const;
  /// In which the rank with the most work does none.
  [[nodiscard]] Seconds waiting(const Execution& execution) const;
};

/// Traffic from one host to another that goes on while a task runs, over one TCP connection.
struct BackgroundTraffic {
  int from = 0, to = 0;
  BytesPerSecond rate;  ///< at most; zero: as fast as it goes
};

struct ReplayPlan {
  std::vector<HostRate> hosts = {};
  Uplinks uplinks = {};
  WorkerTask task = {};
  std::vector<BackgroundTraffic> background = {};
  Bytes sent = {};                                ///< by the rank that sends most, or what is added up
  std::shared_ptr<const StepOfRanks> graph = {};  ///< of steps whose ranks exchange what they hold
};

/// Throws ScenarioError: hosts cannot do what the key says.
[[noreturn]] void refuse_replay(const Scenario& scenario, const std::string& key, const std::string& got,
                                const std::string& expected);

/// Of any plan whose ranks exchange what they hold by collectives and messages; or with synchronous servers, after the
/// passes. What the processes do, but for where they run and how often. Throws ScenarioError at the key that cannot be
/// replayed.
ReplayPlan plan_step(const Scenario& scenario);

/// A collective alone, as the one task of a step.
ReplayPlan plan_collective(const Scenario& scenario);

/// Options of a replay besides the scenario.
struct ReplayOptions {
  int repetitions = 0;  ///< 0: as many as take about a second and a half, 3 to 15
  Seconds predicted;    ///< of one repetition, for repetitions and patience
};

/// Throws ScenarioError at the key that cannot be replayed. Workloads other than collectives and training steps
/// (plan_step), more than one rank per node, `auto` for sums, several cards, too many hosts. Also a fabric that hosts
/// cannot have, and a message that is no whole number of fp32 values.
ReplayPlan plan_replay(const Scenario& scenario, const ReplayOptions& options);

}  // namespace foretrain

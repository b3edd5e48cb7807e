// A training step as what each process of a replay does: the step's task graph, rank by rank.
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

}  // namespace foretrain

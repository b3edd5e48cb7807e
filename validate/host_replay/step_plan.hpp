// A training step as what each process of a replay does: the step's task graph, rank by rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"
#include "model/training/graph/step_graph.hpp"
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

/// What the processes do in a step, but for where they run and how often they repeat it.
struct StepPlan {
  WorkerTask task;
  std::shared_ptr<const StepOfRanks> graph;  ///< nothing where servers hold the weights

  /// That the rank which sends most sends.
  [[nodiscard]] Bytes sent() const;
};

/// Throws ScenarioError: hosts cannot do what the key says.
[[noreturn]] void refuse_replay(const Scenario& scenario, const std::string& key, const std::string& got,
                                const std::string& expected);

/// Of any plan whose ranks exchange what they hold by collectives and messages; or with synchronous servers, after the
/// passes. Throws ScenarioError at the key that cannot be replayed.
StepPlan plan_step(const Scenario& scenario);

/// A collective alone, as the one task of a step.
StepPlan plan_collective(const Scenario& scenario);

}  // namespace foretrain

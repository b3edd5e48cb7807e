// From a scenario to what is run: hosts with their rates, and the task of their processes.
#pragma once

#include "model/scenario/scenario.hpp"
#include "validate/host_replay/step_plan.hpp"

namespace foretrain {

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

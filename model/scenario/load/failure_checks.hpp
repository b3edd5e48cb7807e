// Whether failures, and what is saved against them, fit cluster, workload and plan.
#pragma once

#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Throws ScenarioError at the guilty key: failures in a workload that trains nothing, that saves nothing, or beside
/// other jobs; an interval to be found without failures; checkpoints in the memory of a machine that has no neighbour;
/// replicated servers where there are none.
void check_failures(const Scenario& scenario);

}  // namespace foretrain

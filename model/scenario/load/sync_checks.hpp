// Whether the way of synchronising fits cluster, workload and plan.
#pragma once

#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Throws ScenarioError at the guilty key: parameter servers with sharded optimizers, more of them than GPUs or spare
/// machines, or with what they know for data parallelism alone; compression that the workload or algorithm cannot have;
/// levels without a hierarchy.
void check_sync(const Scenario& scenario);

}  // namespace foretrain

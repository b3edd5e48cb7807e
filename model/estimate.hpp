// The first executor: closed form, no simulation.
#pragma once

#include "model/prepared.hpp"

namespace foretrain {

/// Estimates a prepared scenario: schedule formulas for training steps, longest path for explicit task lists.
StepResult estimate(const PreparedScenario& scenario);

}  // namespace foretrain

// One call from a scenario to its result, by whichever executor the fidelity names.
#pragma once

#include "model/result.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Throws ScenarioError or UsageError when the scenario cannot be predicted.
StepResult predict(const Scenario& scenario, Fidelity fidelity);

}  // namespace foretrain

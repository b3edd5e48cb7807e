// One call from a scenario to its result, by whichever executor the fidelity names.
#pragma once

#include "model/result.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Whether a result says what ran when (StepResult::timeline): of task lists, collectives and steps. A closed form has
/// no timeline: with Fidelity::estimate the step's graph is executed as well, each block at its isolated duration.
enum class Timeline { leave_out, fill };

/// Throws ScenarioError or UsageError when the scenario cannot be predicted.
StepResult predict(const Scenario& scenario, Fidelity fidelity, Timeline timeline = Timeline::leave_out);

}  // namespace foretrain

// Changes that make a slow step faster.
#pragma once

#include <vector>

#include "reports/diagnose/diagnosis.hpp"

namespace foretrain {

/// The best changes from a state without another training or other hardware; the end of the likeliest cause is one of
/// the changes. All are estimated, `expected` too. `in_state` loads the scenario with that cause. Throws as predict
/// does.
std::vector<StepChange> best_changes(const StepDiagnosis& diagnosis, const Result& expected, const Reload& in_state);

}  // namespace foretrain

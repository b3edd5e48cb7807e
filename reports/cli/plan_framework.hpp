// Which plans the framework that a scenario names can run.
#pragma once

#include <string>
#include <vector>

#include "model/planning/plan_search.hpp"

namespace foretrain {

/// Keeps the scenario's values of keys that the framework's files, which `exporter` writes, never have. False where
/// there are none.
bool fix_lacking(const std::string& exporter, PlanDimensions& chosen);

/// Leaves out of the best plans those with settings that the framework's files, which `exporter` writes, cannot have,
/// and warns. A framework that has none of them keeps them all.
void keep_plans_of(const std::string& exporter, const std::vector<PlanSpace>& spaces, std::vector<PlanCandidate>& best);

}  // namespace foretrain

// Keys that a scenario states and that mean nothing to its plan.
#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace foretrain {

/// A sentence for each, with the reason. They are no errors: a sweep goes over plans to which they mean something, too.
std::vector<std::string> unheeded_keys(const Scenario& scenario);

}  // namespace foretrain

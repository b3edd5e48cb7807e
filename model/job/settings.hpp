// What was predicted, in words: the resolved settings of a scenario, and which of them it does not say itself.
#pragma once

#include <string>
#include <vector>

#include "model/result.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

std::vector<Setting> settings_of(const Scenario& scenario);

}  // namespace foretrain

// What was predicted, in words: the resolved settings of a scenario, and which of them it does not say itself.
#pragma once

#include <string>
#include <vector>

#include "model/result.hpp"
#include "model/scenario/scenario.hpp"
#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// `document`: the scenario's, overrides applied, whose trainer becomes values before a scenario is made.
std::vector<Setting> settings_of(const Scenario& scenario, const YamlNode& document);

}  // namespace foretrain

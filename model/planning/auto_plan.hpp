// `auto` as the value of a plan's key: what it stands for is searched, as `foretrain plan` does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/planning/plan_space.hpp"

namespace foretrain {

/// Step time of a scenario, by the caller's executor.
using StepTimeOf = std::function<Seconds(const Scenario&)>;

/// Values of `auto`, as for --set: the plan that is best of the `finalists` best by estimate. Throws
/// ScenarioError where no plan fits.
std::vector<std::string> auto_overrides(const YamlNode& document, const std::string& name, const StepTimeOf& step_time,
                                        std::size_t finalists);

}  // namespace foretrain

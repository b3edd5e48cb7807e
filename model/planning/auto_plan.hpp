// `auto` as the value of a plan's key: what it stands for is searched, as `foretrain plan` does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/planning/plan_space.hpp"

namespace foretrain {

/// How long a scenario's step takes, by the means of the caller.
using StepTimeOf = std::function<Seconds(const Scenario&)>;

/// What `auto` stands for, as for --set: the plan that is best of the `finalists` best by estimate. Throws
/// ScenarioError where no plan fits.
std::vector<std::string> auto_overrides(const YamlNode& document, const std::string& name, const StepTimeOf& step_time,
                                        std::size_t finalists);

}  // namespace foretrain

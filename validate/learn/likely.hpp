// Intervals of a learned profile's settings. In: PROFILE.yaml; out: unknowns with two values each.
#pragma once

#include <vector>

#include "model/scenario/yaml_reader.hpp"
#include "validate/learn/parameters.hpp"

namespace foretrain {

/// A setting that moves a step, one standard deviation to either side of what was learned: `low` and `high` as
/// StackParameter::value() has them.
struct LikelySetting {
  StackParameter parameter;
  double low = 0.0, high = 0.0;
};

/// Settings of a framework file, in its order. `usual`: a scenario of the stack. Throws ScenarioError for a file that
/// was not learned or has no intervals, for a setting that is none and for bad values.
std::vector<LikelySetting> likely_settings(const MappingReader& stack, const Scenario& usual);

}  // namespace foretrain

// What a result rests on.
#pragma once

#include <vector>

#include "model/base/constant.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// The scenario's constants and figures that concern its work, without numbers that were not read since the innermost
/// Reading began. What does not note its reads counts as read.
std::vector<Constant> provenance_of(const Scenario& scenario);

}  // namespace foretrain

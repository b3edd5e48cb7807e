// The cost of a failed part until it is repaired: a slow GPU, a card, a machine, a switch.
#pragma once

#include <string>
#include <vector>

#include "reports/explain/what_if.hpp"

namespace foretrain {

/// The scenario without each part that a training's cluster has; none where its machines differ, or nothing is trained.
/// If machines fail, training restarts on those that are left, with as many whole replicas as these hold, each
/// with the samples that it had; else it goes on, slower.
std::vector<WhatIf> part_losses(const Scenario& scenario, const Reload& reload);

/// Ending in a line end; empty where there are none.
std::string to_text(const Result& whole, const std::vector<WhatIf>& losses);
std::string to_json(const Result& whole, const std::vector<WhatIf>& losses);

}  // namespace foretrain

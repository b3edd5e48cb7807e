// What a part that fails costs a training until it is repaired: a slow GPU, a card, a machine, a switch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/result.hpp"
#include "reports/explain/what_if.hpp"

namespace foretrain {

/// A scenario without a part of its hardware. Where machines are gone, training restarts on those that are left, with
/// as many whole replicas as these hold, each with the samples that it had; else it goes on, slower.
struct PartLoss {
  WhatIf what_if;
  int machines = 0;  ///< that are lost with the part; 0: training goes on
  std::optional<Result> result = {};
};

/// The parts that a training's cluster has; none where its machines differ, or nothing is trained.
std::vector<PartLoss> part_losses(const Scenario& scenario, const Reload& reload);

/// Ending in a line end; empty where there are none.
std::string to_text(const Result& whole, const std::vector<PartLoss>& losses);
std::string to_json(const Result& whole, const std::vector<PartLoss>& losses);

}  // namespace foretrain

// How long the parts of divided transfers take.
#pragma once

#include <span>
#include <vector>

#include "model/training/step/rank_classes.hpp"
#include "model/training/step/step.hpp"

namespace foretrain {

/// By part of each transfer, a number: parts of a transfer with the same one begin together, as nothing tells apart
/// when their lanes are ready. Lanes are alike where their stage and speed are, and those of all that they wait for.
std::vector<std::vector<int>> parts_together(std::span<const Step::Transfer> transfers,
                                             std::span<const RankClasses::Lane> lanes);

/// Sets the time of each part of the divided transfers, with those beside it that begin together with it. Others start
/// apart: what a part meets of them only the simulation knows, and an estimate is not above it.
void set_times(std::span<Step::Transfer> transfers, std::span<const RankClasses::Lane> lanes, const Topology& topology,
               std::span<const BackgroundFlow> background);

}  // namespace foretrain

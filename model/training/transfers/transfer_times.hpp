// Times of the parts of divided transfers.
#pragma once

#include <span>
#include <vector>

#include "model/training/step/step.hpp"

namespace foretrain {

/// Sets what each part of a divided transfer takes alone, and beside those parts of `among` that move when it does: of
/// this transfer and of all others of the same groups.
void set_times(std::vector<Step::Transfer::Part>& parts, int among, const Topology& topology,
               std::span<const BackgroundFlow> background);

/// The least that one of a transfer's groups takes while nothing else moves; 0 where it is not known whose flows are
/// whose. `group_of_rank`: by rank, -1 for none.
Seconds least_time(const LoweredCollective& lowered, const std::vector<int>& group_of_rank, const Topology& topology);

}  // namespace foretrain

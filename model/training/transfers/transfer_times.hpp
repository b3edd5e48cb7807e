// How long the parts of divided transfers take.
#pragma once

#include <span>

#include "model/training/step/step.hpp"

namespace foretrain {

/// Sets what each part of a divided transfer takes alone, and beside those parts of `among` that move when it does: of
/// this transfer and of all others of the same groups.
void set_times(Step::Transfer& transfer, int among, const Topology& topology,
               std::span<const BackgroundFlow> background);

}  // namespace foretrain

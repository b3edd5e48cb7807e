// What a schedule loses when the library's kernels carry it out.
#pragma once

#include "model/collectives/algorithm.hpp"
#include "model/collectives/library.hpp"

namespace foretrain {

/// Adds to a named algorithm's phases, whose flows count payload and headers, what `auto` counts for the library's own:
/// links' shares, protocol, steps, launches, local copies. Rings and reductions in switches are the library's: one
/// call, rings under the fastest protocol. Anything else is written with its point-to-point messages: each phase is one
/// group of calls, with a launch, the set-up of its peers, and Simple. Without a library nothing is added.
void add_losses(std::vector<LoweredCollective::Phase>& phases, const Algorithm& algorithm, const CollectiveCall& call,
                const Library& library, const Topology& topology);

}  // namespace foretrain

// `auto`: collectives as NCCL would run them (see automatic.cpp).
#pragma once

#include <optional>

#include "model/collectives/collective.hpp"

namespace foretrain {

/// lower() for SyncAlgorithm::automatic; the call has been checked.
LoweredCollective lower_automatic(const CollectiveCall& call, const Topology& topology, const Calibration& calibration);

/// A named algorithm that NCCL has, as `auto` would carry it out: its rings, the double binary trees between nodes,
/// sums in switches. Nothing where NCCL has none of that name for the call, or there is no library: the schedule is the
/// user's own then.
std::optional<LoweredCollective> lower_in_library(const CollectiveCall& call, const Topology& topology,
                                                  const Calibration& calibration);

/// How long that takes with nothing else on the links, without the flows that it would be; headers of exchanges are
/// left out.
Seconds automatic_time(const CollectiveCall& call, const Topology& topology, const Calibration& calibration);

}  // namespace foretrain

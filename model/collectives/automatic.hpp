// `auto`: collectives as NCCL would run them (see automatic.cpp).
#pragma once

#include "model/collectives/collective.hpp"

namespace foretrain {

/// lower() for SyncAlgorithm::automatic; the call has been checked.
LoweredCollective lower_automatic(const CollectiveCall& call, const Topology& topology, const Calibration& calibration);

/// How long that takes with nothing else on the links, without the flows that it would be; headers of exchanges are
/// left out.
Seconds automatic_time(const CollectiveCall& call, const Topology& topology, const Calibration& calibration);

}  // namespace foretrain

// `auto`: collectives as NCCL would run them (see automatic.cpp).
#pragma once

#include "model/collectives/collective.hpp"

namespace foretrain {

/// lower() for SyncAlgorithm::automatic; the call has been checked.
LoweredCollective lower_automatic(const CollectiveCall& call, const Topology& topology, const Calibration& calibration);

}  // namespace foretrain

// The rule of thumb for when synchronisation costs as much as computation, beside what the model finds.
#pragma once

#include <optional>

#include "model/result.hpp"
#include "model/training/step.hpp"

namespace foretrain {

/// formula: 2 · model / (bandwidth · batch · FLOPs), that is 2 · gradient bytes / bandwidth over the time of a
/// replica's batch at the device's peak. The bandwidth is that of the narrowest hop of a ring through the replicas:
/// between GPUs of a node, and the node's network cards together, shared by the groups that synchronise at once.
/// simulated: time of gradient and weight transfers, hidden or not, over time of computation. Nothing where there is
/// one replica.
std::optional<CommunicationRatio> communication_ratio(const Scenario& scenario, const TrainWorkload& train,
                                                      const Step& step, const Topology& topology,
                                                      const TrainResult& result);

}  // namespace foretrain

// The textbook formula for when synchronisation costs as much as computation, beside what the model finds.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "model/training/outcome/breakdown.hpp"

namespace foretrain {

/// Time of synchronisation over time of computation: 2·model/(bandwidth·batch·FLOPs), and as predicted.
struct CommunicationRatio {
  double formula = 0.0;
  double simulated = 0.0;
};

/// formula: 2 · model / (bandwidth · batch · FLOPs), that is 2 · gradient bytes / bandwidth over the time of a
/// replica's batch at the device's peak. The bandwidth is that of the narrowest hop of a ring through the replicas:
/// between GPUs of a node, and the node's NICs together, shared by the groups that synchronise at once.
/// simulated: time of gradient and weight transfers, hidden or not, over time of computation. Nothing where there is
/// one replica.
std::optional<CommunicationRatio> communication_ratio(const Scenario& scenario, const TrainWorkload& train,
                                                      const Step& step, const Topology& topology,
                                                      const Breakdown& breakdown,
                                                      const std::map<std::string, CommunicationTime>& communication);

}  // namespace foretrain

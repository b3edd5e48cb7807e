// What keeps network cards from what their line rate promises, without being stated as a limit.
#pragma once

#include <string>
#include <vector>

#include "model/hardware/topology.hpp"

namespace foretrain {

/// A sentence for each: slots that carry less than the card in them, cards that no GPU in use sends through,
/// connections that carry less than a card. None for one node.
std::vector<std::string> network_limits(const Cluster& cluster, const Topology& topology);

}  // namespace foretrain

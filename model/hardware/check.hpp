// Whether a network of nodes is possible. The scenario reader asks, and adds where the user wrote it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/hardware/cluster.hpp"
#include "model/hardware/topology.hpp"

namespace foretrain {

/// The first thing that is impossible about the network between a cluster's nodes, each figure of which is possible.
/// Keys below `cluster`: a fabric into which the nodes do not fit, faults of parts that do not exist or that cut a node
/// off from the others.
std::optional<HardwareProblem> check_network(const Cluster& cluster);

/// A sentence for each: slots that carry less than the card in them, cards that no GPU in use sends through,
/// connections that carry less than a card. None for one node.
std::vector<std::string> network_limits(const Cluster& cluster, const Topology& topology);

}  // namespace foretrain

// Whether a node, and a network of nodes, are possible. The scenario reader asks, and adds where the user wrote it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/hardware/cluster.hpp"
#include "model/hardware/topology.hpp"

namespace foretrain {

/// Everything that is impossible or missing in a node: no GPU or CPU, links to vertices that do not exist, links
/// without bandwidth, parts that no link reaches, figures that are zero or not finite, a network that carries nothing.
/// Empty for a node that Topology accepts.
std::vector<HardwareProblem> check_node(const Node& node);

/// The first thing that is impossible about the network between a cluster's nodes (which have passed check_node), keys
/// below `cluster`: a fabric into which the nodes do not fit, links without bandwidth, packets smaller than their
/// headers, faults of parts that do not exist or that cut a node off from the others.
std::optional<HardwareProblem> check_network(const Cluster& cluster);

/// A sentence for each: slots that carry less than the card in them, cards that no GPU in use sends through,
/// connections that carry less than a card. None for one node.
std::vector<std::string> network_limits(const Cluster& cluster, const Topology& topology);

}  // namespace foretrain

// Is a node possible? For whoever builds one: the scenario reader, importers, tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/hardware/cluster.hpp"

namespace foretrain {

/// One thing that is wrong with a node.
struct NodeProblem {
  std::string key;   ///< dotted key of the node's data file that it belongs to, e.g. "wiring", "cpu.memory_bandwidth"
  std::string text;  ///< what is wrong, naming parts and values
};

/// Everything that is impossible or missing in a node: no GPU or CPU, links to vertices that do not exist, links
/// without bandwidth, parts that no link reaches, figures that are zero or not finite, a network that carries nothing.
/// Empty for a node that Topology accepts.
std::vector<NodeProblem> check_node(const Node& node);

/// The first thing that is impossible about the network between a cluster's nodes (which have passed check_node), keys
/// below `cluster`: a fabric into which the nodes do not fit, links without bandwidth, packets smaller than their
/// headers, faults of parts that do not exist or that leave somebody without a way to the others.
std::optional<NetworkProblem> check_network(const Cluster& cluster);

}  // namespace foretrain

// Is a node possible? For whoever builds one: the scenario reader, importers, tests.
#pragma once

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

}  // namespace foretrain

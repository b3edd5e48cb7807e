// The rings inside one node over which a collective spreads its traffic, as NCCL searches for them.
#pragma once

#include <vector>

#include "model/hardware/topology.hpp"

namespace foretrain {

/// A cyclic order of a node's ranks and its share of the traffic; shares add up to one.
struct NodeRing {
  std::vector<int> order;
  double share = 1.0;
  bool chain = false;  ///< the last rank has no direct way back to the first: the order is a path
};

/// With NVLinks between GPUs: rings that together use as many of the lanes as possible, in both directions.
/// Without a ring: the widest path. Else (NVSwitch, PCIe): the topology's natural ring, which uses every port.
std::vector<NodeRing> node_rings(const Topology& topology, const std::vector<int>& ranks);

}  // namespace foretrain

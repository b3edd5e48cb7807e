// Which endpoint of the hardware each participant of a schedule is.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "model/collectives/collective.hpp"

namespace foretrain {

/// Ring orders of groups: nodes in the order in which the group first names them, and the widest ring's order inside
/// each node (as a path where there are several nodes). Remembers the orders of node-local patterns, which repeat.
class RingOrders {
 public:
  explicit RingOrders(const Topology& topology) : topology_(topology) {}
  std::vector<int> order(const std::vector<int>& group);
  [[nodiscard]] const Topology& topology() const { return topology_; }

 private:
  const Topology& topology_;
  /// Kind of the node and local indices → ring order of local indices.
  std::map<std::pair<int, std::vector<int>>, std::vector<int>> known_;
};

/// Splits a group into its ranks per node, nodes in order of first appearance, ranks in the group's order.
std::vector<std::vector<int>> split_by_node(const std::vector<int>& group, const Topology& topology);

/// The participants' endpoints for every group of a call: ranks in the order in which the schedule numbers them (rings
/// and hierarchies want neighbours next to each other), then servers.
std::vector<std::vector<EndpointId>> place_participants(const CollectiveCall& call, const Topology& topology);

/// The endpoints of the servers of one group, for hosts their server processes (Topology::server_on). cpu: host memory,
/// nearest to the group's first GPU for one server, spread over the group's nodes, then over their sockets, for
/// several; gpu and colocated: GPUs of the group, evenly spread; dedicated: host memory of nodes on which no group has
/// ranks. Throws ImpossiblePlan when there are fewer such nodes than dedicated servers.
std::vector<EndpointId> server_endpoints(const CollectiveCall& call, const std::vector<int>& group,
                                         const Topology& topology);

}  // namespace foretrain

// Routes inside one node, found once on the node's wiring graph and shared by all nodes of the cluster.
#pragma once

#include <string>
#include <vector>

#include "model/base/number.hpp"
#include "model/hardware/route.hpp"

namespace foretrain {

/// The tables behind Topology. Local endpoints: GPU i is endpoint i; the host memory of socket s is endpoint gpus + s.
/// Link ids are local to the node: Topology adds node · links.size().
struct NodeRoutes {
  int gpus = 0;
  std::vector<std::string> host_names;  ///< one per CPU socket
  std::vector<DirectedLink> links;
  std::vector<int> host_of_gpu;         ///< the nearest socket
  std::vector<LinkId> memory_links;     ///< by socket; -1 where the memory's bandwidth is not stated
  std::vector<LinkId> summation_links;  ///< by socket; -1 where the cores are no narrower than the memory
  BytesPerSecond summing_traffic;       ///< see Topology::summing_traffic_rate
  std::vector<Route> between_endpoints;
  /// Per endpoint, from its memory out to the fabric: one route per card that it uses. A GPU uses one; host memory uses
  /// all cards at the least distance. Empty without cards. Their latency is zero: the network's own covers them.
  std::vector<std::vector<Route>> exits;
  std::vector<std::vector<Route>> entries;  ///< the same cards, from the fabric to the endpoint's memory
  std::vector<std::vector<int>> cards;      ///< the cards behind exits and entries, in the same order
  std::vector<LinkId> direct_nvlinks;       ///< see direct_nvlink
  std::vector<int> tree_position;  ///< of each GPU on a walk through the PCIe tree, socket by socket, switch by switch

  [[nodiscard]] int endpoints() const { return gpus + static_cast<int>(host_names.size()); }
  [[nodiscard]] const Route& between(int source, int destination) const {
    return between_endpoints[at_index(source * endpoints() + destination)];
  }
  /// The directed NVLink (all parallel ones together) from one GPU to another, or -1 where there is none.
  [[nodiscard]] LinkId direct_nvlink(int source, int destination) const {
    return direct_nvlinks[at_index(source * gpus + destination)];
  }
};

/// `network` is the node's, or the cluster's overrides of it. Faults slow links down, or take them off all routes; GPUs
/// whose card has failed use the nearest of those that are left. Links have the same ids with and without faults.
/// Throws ImpossiblePlan naming the vertices that cannot be reached, or what else makes routes impossible.
NodeRoutes find_node_routes(const Node& node, const Network& network, const std::vector<Fault>& faults = {});

/// The faults inside one node, bandwidths as its links state them: payload.
std::vector<Fault> faults_of_node(const Cluster& cluster, int node);

}  // namespace foretrain

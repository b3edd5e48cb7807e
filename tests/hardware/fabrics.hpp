// Clusters behind fabrics of every kind, and what their routes cross.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/hardware/topology.hpp"
#include "tests/hardware/nodes.hpp"

namespace foretrain::test_nodes {

/// Nodes of eight GPUs and eight cards of 25 GB/s, GPU i at card i, 5 us, and 0.5 us a switch.
inline Cluster behind(decltype(Fabric::shape) shape, int nodes) {
  Cluster cluster = cluster_of(nvswitch_node(), nodes);
  cluster.network.fabric.shape = std::move(shape);
  cluster.network.fabric.switch_latency = 0.5_us;
  return cluster;
}

/// Links of a route in the fabric.
inline std::vector<std::string> in_fabric(const Topology& topology, int from, int to) {
  std::vector<std::string> names;
  for (const LinkId link : topology.route(from, to).links) {
    if (link >= topology.first_fabric_link()) names.push_back(topology.link(link).name);
  }
  return names;
}

inline BytesPerSecond bandwidth_of(const Topology& topology, const std::string& name) {
  for (LinkId link = topology.first_fabric_link(); link < topology.links(); ++link) {
    if (topology.link(link).name == name) return topology.link_bandwidth(link);
  }
  return BytesPerSecond(0.0);
}

}  // namespace foretrain::test_nodes

// Clusters that have the NCCL of today, calls that leave the algorithm to it, and the published constants.
#pragma once

#include <utility>
#include <vector>

#include "model/collectives/collective.hpp"
#include "model/collectives/contention.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "tests/hardware/nodes.hpp"

namespace foretrain::test_nodes {

/// With the library of today.
inline Cluster nccl_cluster(Node node, int nodes = 1) {
  Cluster cluster = cluster_of(std::move(node), nodes);
  cluster.nccl = NcclVersion{};
  return cluster;
}

inline CollectiveCall automatic_call(CollectiveOperation operation, Bytes size, std::vector<std::vector<int>> groups) {
  CollectiveCall call;
  call.operation = operation;
  call.size = size;
  call.groups = std::move(groups);
  return call;
}

inline Node hopper_node() {
  Node node = nvswitch_node();
  node.gpu.compute_capability = 9.0;
  node.gpu.memory_bandwidth = 3350.0_GBps;
  node.link_types[0].in_network_reduction = true;
  return node;
}

inline const Calibration& published() {
  static const Calibration calibration = load_default_calibration();
  return calibration;
}

inline LoweredCollective by_nccl(const CollectiveCall& call, const Topology& topology) {
  return lower(call, topology, published());
}
/// With nothing else on the links.
inline Seconds nccl_time(const CollectiveCall& call, const Topology& topology) {
  return uncontended_time(by_nccl(call, topology), topology);
}

}  // namespace foretrain::test_nodes

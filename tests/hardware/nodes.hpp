// Nodes built in code, with round figures, for tests that work out expected routes and times by hand.
#pragma once

#include <string>
#include <utility>

#include "model/hardware/cluster.hpp"

namespace foretrain::test_nodes {

inline LinkType link_type(std::string name, LinkKind kind, BytesPerSecond bandwidth, Seconds latency) {
  return {std::move(name), kind, bandwidth, latency, true};
}

/// GPUs 0 … gpus-1 and `sockets` CPUs (vertices gpus, gpus + 1, …) without any link; no figure of the GPU is set.
inline Node bare_node(std::string name, int gpus, int sockets) {
  Node node;
  node.name = std::move(name);
  node.gpus = gpus;
  node.cpu.name = "test CPU";
  node.cpu.sockets = sockets;
  node.cpu.cores = 16 * sockets;
  node.cpu.memory_bandwidth = 400.0_GBps * static_cast<double>(sockets);
  for (int i = 0; i < gpus; ++i) node.vertices.push_back({"gpu" + std::to_string(i), VertexKind::gpu});
  for (int i = 0; i < sockets; ++i) node.vertices.push_back({"cpu" + std::to_string(i), VertexKind::cpu});
  return node;
}

inline int add_vertex(Node& node, std::string name, VertexKind kind) {
  node.vertices.push_back({std::move(name), kind});
  return static_cast<int>(node.vertices.size()) - 1;
}

/// `gpus` GPUs and one CPU, each on its own link of `bandwidth` to one PCIe switch; no NICs.
/// Links: every pair of GPUs meets in the switch only; traffic to the host shares the switch's one link to the CPU.
inline Node pcie_switch_node(int gpus = 4, BytesPerSecond bandwidth = 16.0_GBps) {
  Node node = bare_node("pcie-switch", gpus, 1);
  node.link_types = {link_type("pcie3-x16", LinkKind::pcie, bandwidth, 1.0_us)};
  const int plx = add_vertex(node, "plx0", VertexKind::pcie_switch);
  for (int gpu = 0; gpu < gpus; ++gpu) node.links.push_back({gpu, plx, 0, 1});
  node.links.push_back({plx, gpus, 0, 1});
  return node;
}

/// Eight GPUs and two sockets (vertices 8 and 9): GPUs 2i, 2i + 1 and cards on switch i of four, by links of type 1;
/// the sockets joined by one of type 2.
inline void add_pcie_trees(Node& node) {
  for (int i = 0; i < 4; ++i) {
    const int plx = add_vertex(node, "plx" + std::to_string(i), VertexKind::pcie_switch);
    node.links.push_back({2 * i, plx, 1, 1});
    node.links.push_back({2 * i + 1, plx, 1, 1});
    node.links.push_back({plx, 8 + i / 2, 1, 1});
    node.nic_attachment.push_back(plx);
  }
  node.links.push_back({8, 9, 2, 1});
  node.nic_attachment_link = node.link_types[1];
}

/// DGX-1 with V100: hybrid cube mesh of NVLink2 (25 GB/s a link), four PCIe switches (GPUs 2i, 2i + 1 and card i on
/// switch i) of 16 GB/s, two sockets joined by 20 GB/s, four cards of 100 Gbit/s at full efficiency, 5 µs.
inline Node dgx1_node() {
  Node node = bare_node("dgx1", 8, 2);
  node.link_types = {link_type("nvlink2", LinkKind::nvlink, 25.0_GBps, 1.0_us),
                     link_type("pcie3-x16", LinkKind::pcie, 16.0_GBps, 1.0_us),
                     link_type("qpi", LinkKind::socket, 20.0_GBps, 0.5_us)};
  constexpr int double_links[][2] = {{0, 3}, {0, 4}, {1, 2}, {1, 5}, {2, 3}, {4, 7}, {5, 6}, {6, 7}};
  constexpr int single_links[][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 6}, {3, 7}, {4, 5}, {4, 6}, {5, 7}};
  for (const auto& pair : double_links) node.links.push_back({pair[0], pair[1], 0, 2});
  for (const auto& pair : single_links) node.links.push_back({pair[0], pair[1], 0, 1});
  add_pcie_trees(node);
  node.network = {4, 100.0_Gbitps, 1.0, 5.0_us, 1.0, true};
  return node;
}

/// Eight GPUs on an NVSwitch, 300 GB/s each way for every GPU, as DGX A100: four PCIe switches of 25 GB/s with two GPUs
/// and two cards of 200 Gbit/s each, two sockets; 5 µs between nodes.
inline Node nvswitch_node() {
  Node node = bare_node("nvswitch", 8, 2);
  node.link_types = {link_type("nvlink3", LinkKind::nvlink, 25.0_GBps, 1.0_us),
                     link_type("pcie4-x16", LinkKind::pcie, 25.0_GBps, 1.0_us),
                     link_type("xgmi", LinkKind::socket, 100.0_GBps, 0.5_us)};
  const int nvswitch = add_vertex(node, "nvswitch", VertexKind::nvswitch);
  for (int gpu = 0; gpu < 8; ++gpu) node.links.push_back({gpu, nvswitch, 0, 12});
  add_pcie_trees(node);
  node.network = {8, 200.0_Gbitps, 1.0, 5.0_us, 1.0, true};
  return node;
}

/// GPUs in equal parts on the sockets, PCIe of 25 GB/s straight into the CPU, no peer-to-peer access.
inline Node staged_node(int gpus = 4, int sockets = 2) {
  Node node = bare_node("staged", gpus, sockets);
  node.peer_to_peer = false;
  node.link_types = {link_type("pcie4-x16", LinkKind::pcie, 25.0_GBps, 1.0_us),
                     link_type("upi", LinkKind::socket, 50.0_GBps, 0.5_us)};
  for (int gpu = 0; gpu < gpus; ++gpu) node.links.push_back({gpu, gpus + gpu * sockets / gpus, 0, 1});
  if (sockets > 1) node.links.push_back({gpus, gpus + 1, 1, 1});
  return node;
}

/// `nodes` of a kind, all their GPUs, with their own network.
/// Without a collective library: times are bytes over bandwidth.
inline Cluster cluster_of(Node node, int nodes = 1) {
  Cluster cluster;
  cluster.nccl = no_nccl;
  cluster.gpus_per_node = node.gpus;
  cluster.network = node.network;
  cluster.nodes = nodes;
  cluster.node = std::move(node);
  return cluster;
}

}  // namespace foretrain::test_nodes

// Machines as values: nodes with their internal links, and the network that joins them. Filled by the scenario loader
// from scenarios/hardware/, turned into routes by topology.hpp.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/quantity.hpp"
#include "model/base/shared_vector.hpp"
#include "model/hardware/cpu.hpp"
#include "model/hardware/fabric.hpp"
#include "model/hardware/failures.hpp"
#include "model/hardware/gpu.hpp"
#include "model/hardware/storage.hpp"
#include "model/hardware/transport.hpp"

namespace foretrain {

/// Version whose choices of algorithm, protocol and channels apply. Without one, collectives are plain copies: their
/// schedule as written, at what large copies reach over the links, with nothing else.
struct NcclVersion {
  int major = 2, minor = 29;

  [[nodiscard]] constexpr bool none() const { return major == 0; }
  auto operator<=>(const NcclVersion&) const = default;
};

inline constexpr NcclVersion no_nccl{0, 0};

enum class LinkKind { pcie, nvlink, nvswitch, socket, memory, network };

/// A kind of cable or bus: what one link carries in one direction.
struct LinkType {
  std::string name;  ///< e.g. "nvlink2", "pcie3-x16"
  LinkKind kind = LinkKind::pcie;
  BytesPerSecond bandwidth;  ///< payload bandwidth of one link, one direction, as achieved by large copies
  Seconds latency;           ///< added by crossing the link once
  bool full_duplex = true;   ///< false: both directions share `bandwidth`
  /// NVSwitches on this link add up and multicast what passes through them (NVLink SHARP).
  bool in_network_reduction = false;
  /// Share of `bandwidth` that rings of a collective library's kernels reach; 0: the calibration's general figure.
  double collective_efficiency = 0.0;
  /// Between processors: what their GPUs send each other through all such links together; 0: whatever these carry.
  BytesPerSecond gpu_bandwidth{};
  bool operator==(const LinkType&) const = default;
};

enum class VertexKind { gpu, cpu, pcie_switch, nvswitch, nic };

/// Traffic passes through CPUs and switches on its way to others, never through a GPU or a NIC.
constexpr bool lets_traffic_through(VertexKind kind) { return kind != VertexKind::gpu && kind != VertexKind::nic; }

/// A place in a node's wiring diagram. GPUs and CPUs are endpoints.
struct NodeVertex {
  std::string name;  ///< "gpu0", "cpu1", "plx2", "nvswitch"
  VertexKind kind = VertexKind::gpu;
  bool operator==(const NodeVertex&) const = default;
};

/// `count` parallel links of one type between two vertices (indices into Node::vertices).
struct NodeLink {
  int a = 0;
  int b = 0;
  int type = 0;  ///< index into Node::link_types
  int count = 1;
  bool operator==(const NodeLink&) const = default;
};

/// Message costs of a kind of NIC, with its software, for the pieces into which a collective library cuts its data: a
/// message of m bytes takes `message_time` beside m ÷ (payload bandwidth · `efficiency`).
struct CardMessages {
  double efficiency = 0.0;  ///< of the payload bandwidth, endless messages; 0: the calibration's general figure
  Seconds message_time;     ///< nothing else passes the card at the same time
  Seconds step;             ///< least time of a library's step between nodes, whatever its protocol
  Bytes largest = Bytes(128 * 1024.0);  ///< of messages to many peers and of in-switch reductions; NCCL's own setting
  bool operator==(const CardMessages&) const = default;
};

/// Units that get equal parts of a full link (key network.fairness). flow: each connection between two ends.
/// traffic_class: messages of pipelines, each collective and what others send have a virtual lane each, whatever the
/// number of their connections.
enum class Fairness { flow, traffic_class };
struct Sharing {
  Fairness fairness = Fairness::flow;
  /// Connections of a message between two ranks; collectives have one for each pair of ranks that send to each other.
  /// As traffic classes: the weight of the messages' lane against any other.
  int queue_pairs = 1;
  bool operator==(const Sharing&) const = default;
};

/// NICs of a node and the fabric behind them.
struct Network {
  int nics_per_node = 0;
  BytesPerSecond nic_bandwidth;   ///< one card, one direction, line rate
  double efficiency = 1.0;        ///< payload share of the line rate that large messages reach
  Seconds latency;                ///< host to host, one way, zero bytes
  double oversubscription = 1.0;  ///< node-to-fabric capacity is nics × bandwidth ÷ this
  bool gpu_direct = true;         ///< false: GPU data is staged through host memory
  /// The fabric's switches add up and multicast what passes through them (InfiniBand SHARP).
  bool in_network_reduction = false;
  CardMessages messages = {};
  Fabric fabric = {};
  std::optional<Transport> transport = std::nullopt;  ///< nothing: `efficiency` says it all
  Sharing sharing = {};
  /// Factor on `efficiency` in a cluster of so many nodes, as measured: the key `scaling`.
  std::map<int, double> scaling = {};

  /// Between two numbers of nodes a straight line over their logarithms; 1 on one node, beyond the last as there.
  [[nodiscard]] double share_left(int nodes) const;
  bool operator==(const Network&) const = default;
};

struct Node {
  std::string name;
  std::string description;
  Gpu gpu;
  int gpus = 0;
  Cpu cpu;
  /// Whether GPUs copy to each other over PCIe without the host. Not stated: where Gpu::peer_access allows it and no
  /// processor lies between them, as NCCL does by default (NCCL_P2P_LEVEL is PXB; src/graph/paths.cc).
  std::optional<bool> peer_to_peer = std::nullopt;
  std::vector<LinkType> link_types;
  std::vector<NodeVertex> vertices;  ///< the GPUs first, gpu0 … gpu(gpus-1), then the rest
  std::vector<NodeLink> links;
  std::vector<int> nic_attachment;  ///< vertices that cards hang on, evenly spread: card i of n at [i·size/n]
  LinkType nic_attachment_link;     ///< attachment of a NIC (PCIe)
  Network network;
  Storage storage;
  std::optional<NcclVersion> nccl = std::nullopt;  ///< if the machine decides it: textbook machines have none
  SharedVector<Constant> constants;
  std::vector<std::string> assumed = {};  ///< warnings: what the author of the file assumed
  bool operator==(const Node&) const = default;
};

/// A part that is slower than others of its kind, or broken: a GPU, a card, a link inside a node, or a link of the
/// fabric.
struct Fault {
  int node = -1;     ///< -1: a link of the fabric
  int gpu = -1;      ///< of the node; `share` is its remaining speed, for all work
  int card = -1;     ///< of the node; both directions
  std::string link;  ///< by name: "gpu2>plx1" one direction, "gpu2-plx1" both; empty for a card
  bool failed = false;
  double share = 1.0;                                     ///< remaining share of the bandwidth, and
  BytesPerSecond bandwidth = BytesPerSecond::infinity();  ///< at most this much (as links of its kind are stated)

  [[nodiscard]] bool concerns(const std::string& link_name) const;
  [[nodiscard]] BytesPerSecond left_of(BytesPerSecond whole) const;
  bool operator==(const Fault&) const = default;
};

/// By how much times of equal work differ from device to device and from step to step: standard deviations, as shares.
/// `node` and `rack` are those of factors that all GPUs of a node, of a rack share, beside each GPU's own.
struct Jitter {
  double compute = 0.0, network = 0.0;
  double node = 0.0, rack = 0.0;
  int nodes_per_rack = 1;
  double throttled = 0.0;        ///< share of the time in which a GPU is throttled, for minutes: through whole steps
  double throttled_speed = 1.0;  ///< remaining share of its speed then
  int seed = 1;
  bool operator==(const Jitter&) const = default;
};

/// Nodes of one kind that follow each other, as a cluster holds them.
struct NodeKind {
  const Node& node;
  int nodes, gpus_per_node;
  const Network& network;
};

/// The same as a scenario states it.
struct NodeGroup {
  Node node;
  int nodes = 1;
  int gpus_per_node = 0;  ///< used of each node's GPUs: the first ones
  Network network;        ///< the node's, with the scenario's overrides; the fabric is the cluster's
  bool operator==(const NodeGroup&) const = default;
};

struct Cluster {
  Node node;
  int nodes = 1;
  int gpus_per_node = 0;
  Network network;
  /// With nodes of several kinds: all of them, by number. `node`, `gpus_per_node` and `network` are then those of
  /// the first group. Empty where all nodes are alike.
  std::vector<NodeGroup> groups = {};
  std::vector<Fault> faults = {};
  std::optional<Jitter> jitter = std::nullopt;
  std::optional<double> usd_per_gpu_hour = std::nullopt;
  std::vector<Constant> price_constants = {};  ///< if the price is the catalogue's
  std::optional<Failures> failures = std::nullopt;
  std::optional<Energy> energy = std::nullopt;
  NcclVersion nccl = {};

  [[nodiscard]] int gpus() const { return first_gpu(nodes); }
  /// The same with each network's scaling in its efficiency.
  [[nodiscard]] Cluster at_its_size() const;
  /// At least one: the groups, or what all nodes are alike in.
  [[nodiscard]] std::vector<NodeKind> kinds() const;
  [[nodiscard]] NodeKind kind(int group) const;
  /// The index of the node's group; 0 where all nodes are alike.
  [[nodiscard]] int group_of_node(int number) const;
  [[nodiscard]] const Node& node_at(int number) const { return kind(group_of_node(number)).node; }
  [[nodiscard]] const Network& network_at(int number) const { return kind(group_of_node(number)).network; }
  [[nodiscard]] int gpus_on(int number) const { return kind(group_of_node(number)).gpus_per_node; }
  /// GPUs are numbered node by node.
  [[nodiscard]] int first_gpu(int number) const;
  /// The same number of nodes, all like those of one group.
  [[nodiscard]] Cluster as_group(int group) const;
  bool operator==(const Cluster&) const = default;
};

}  // namespace foretrain

// The hardware as a directed graph of links, and the routes through it.
//
// The wiring of one node is a Boost.Graph; its routes are found once (fewest hops, then most bandwidth) and shared by
// all nodes of its kind. A route between nodes is: source GPU → its nearest network card → fabric → nearest card →
// destination GPU. Every physical link is two directed links (one for a half-duplex link), so that full duplex needs no
// special case. GPUs talk over NVLink where a direct link or an NVSwitch joins them, else over PCIe and the sockets;
// where the node has no peer-to-peer access, through the memory of the source's socket. Each socket's memory is a link
// of its own, shared by reads and writes. Each card has one link to the fabric and one from it (line rate ×
// efficiency); with oversubscription o > 1 the node has one more of each: cards × bandwidth ÷ o. Behind the cards lies
// the fabric (fabric.hpp); a single switch does not block. Nodes with faults have routes of their own over the same
// links.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/hardware/cluster.hpp"

namespace foretrain {

/// Something that sends or receives: GPU rank r is endpoint r (node-major: rank = first_gpu(node) + local index); the
/// host memory of CPU sockets comes behind, node by node; the server process that adds up what arrives there is
/// server_on(that endpoint).
using EndpointId = int;
using LinkId = int;

struct DirectedLink {
  std::string name;
  LinkKind kind = LinkKind::pcie;
  BytesPerSecond bandwidth;            ///< all parallel links together
  bool in_network_reduction = false;   ///< as in LinkType
  double collective_efficiency = 0.0;  ///< as in LinkType
};

/// A link may stand twice in a route (data staged through host memory is written and read there); it then carries twice
/// the bytes.
struct Route {
  std::vector<LinkId> links;
  Seconds latency;  ///< inside a node: the sum over the links; between nodes: the network's and the fabric's, one way
  BytesPerSecond bandwidth;  ///< of the narrowest link (one listed twice gives half); infinite for an empty route
  BytesPerSecond most_rate = BytesPerSecond::infinity();  ///< of the transport's connections, whatever the links carry
};

class Topology {
 public:
  /// Throws ImpossiblePlan naming the unconnected vertices when the node is not connected, and when there are
  /// more GPUs per node asked for than the node has, several nodes without network cards, or a fabric or faults that
  /// cut an endpoint off. check_node() and check_network() find such problems with the keys of the data file.
  explicit Topology(const Cluster& stated, RouteDraw draw = {});
  /// The cluster's, made once for those that a process asks for again and again.
  static Topology of(const Cluster& cluster);

  /// Whether chance chooses routes through the fabric: those of this topology are then what a planner sees, and each
  /// draw gives a topology of its own.
  [[nodiscard]] bool draws_routes() const;
  /// The links of the fabric are those from here on.
  [[nodiscard]] LinkId first_fabric_link() const;

  /// Copies share it; others that this process makes have other serials.
  [[nodiscard]] std::uint64_t serial() const { return serial_; }

  [[nodiscard]] int gpus() const;
  [[nodiscard]] int gpus_per_node() const;  ///< of the first group
  [[nodiscard]] int nodes() const;
  [[nodiscard]] int hosts_per_node() const;  ///< CPU sockets that are endpoints; of the first group
  [[nodiscard]] int hosts() const;           ///< of all nodes
  [[nodiscard]] int first_gpu(int node) const;
  [[nodiscard]] bool is_gpu(EndpointId endpoint) const;
  [[nodiscard]] int node_of(EndpointId endpoint) const;
  [[nodiscard]] EndpointId gpu(int rank) const { return rank; }
  /// Host memory of the socket that is nearest to a GPU.
  [[nodiscard]] EndpointId host_of_gpu(int rank) const;
  [[nodiscard]] EndpointId host(int node, int socket) const;
  /// A process on a host endpoint that adds what it receives to a sum. Data sent to it crosses the host's memory four
  /// times: it is written by the card, then read together with the sum, and the sum is written back. Where the socket's
  /// cores cannot keep its memory busy, they are one more link on the way. Sending from it is sending from the host.
  [[nodiscard]] EndpointId server_on(EndpointId host) const { return host + hosts(); }
  /// The host of a server process; any other endpoint is its own.
  [[nodiscard]] EndpointId host_of_server(EndpointId endpoint) const {
    return endpoint >= gpus() + hosts() ? endpoint - hosts() : endpoint;
  }
  /// What lies behind the fabric and belongs to no node: a server of files. Data to and from it crosses the half of a
  /// route that is in the node, by the card whose turn `number` is.
  [[nodiscard]] EndpointId outside(int number) const { return gpus() + 2 * hosts() + number; }
  /// Memory traffic that the cores of a server's socket can cause: the memory's bandwidth, or what the cores reach.
  [[nodiscard]] BytesPerSecond summing_traffic_rate() const;
  /// The card (0 … nics_per_node-1) through which a GPU leaves its node: the nearest; GPUs with the same nearest cards
  /// are spread evenly over them. -1 where the node has no cards.
  [[nodiscard]] int card_of_gpu(int rank) const;
  [[nodiscard]] int endpoints() const;  ///< GPUs and hosts; server processes are the numbers beyond
  [[nodiscard]] std::string endpoint_name(EndpointId endpoint) const;

  /// Nodes of the same kind have equal links and routes inside: without faults -1 - their group, else a number of its
  /// own.
  [[nodiscard]] int kind_of_node(int node) const;
  [[nodiscard]] int group_of_node(int node) const;  ///< into Cluster::groups; 0 where all nodes are alike

  /// Whether a flow between GPUs meets the same when both are shifted by equally many nodes: all nodes are of one kind
  /// and the fabric is one switch.
  [[nodiscard]] bool nodes_are_alike() const;
  /// Whether flows between GPUs so many ranks further on meet the same: whole nodes, all alike.
  [[nodiscard]] bool repeats_after(int ranks) const { return ranks % gpus_per_node() == 0 && nodes_are_alike(); }

  /// Links are numbered node by node; a link has the same place in every node of a group. The fabric's links come after
  /// those of all nodes.
  [[nodiscard]] int links() const;
  [[nodiscard]] int links_per_node() const;  ///< of the first group
  [[nodiscard]] DirectedLink link(LinkId id) const;
  [[nodiscard]] BytesPerSecond link_bandwidth(LinkId id) const;
  [[nodiscard]] LinkKind link_kind(LinkId id) const;
  [[nodiscard]] bool in_network_reduction(LinkId id) const;
  [[nodiscard]] double collective_efficiency(LinkId id) const;
  /// The datasheet of a node's GPUs, and what is known of its network cards.
  [[nodiscard]] const Gpu& gpu_model(int node) const;
  [[nodiscard]] const CardMessages& card_messages(int node) const;

  /// The cluster's collective library.
  [[nodiscard]] NcclVersion nccl() const;

  /// What passes between nodes goes over, where it is said to be TCP; else nothing.
  [[nodiscard]] const Transport* tcp(int node) const;

  /// The path that data takes. Cheap: composed from the node's route table.
  [[nodiscard]] Route route(EndpointId source, EndpointId destination) const;
  /// Appends the links of route(source, destination): for hot loops, no allocation once `links` has grown.
  void append_route(EndpointId source, EndpointId destination, std::vector<LinkId>& links) const;
  /// As in Route, without the links.
  [[nodiscard]] Seconds latency(EndpointId source, EndpointId destination) const;
  [[nodiscard]] BytesPerSecond most_rate(EndpointId source, EndpointId destination) const;
  /// Whether nothing but cards (and their oversubscription) limits what passes between nodes: who sends to whom does
  /// not matter then.
  [[nodiscard]] bool fabric_is_one_switch() const;
  /// Whether most_rate() is finite for some pair.
  [[nodiscard]] bool limits_connections() const;
  [[nodiscard]] const Sharing& sharing() const;  ///< as in Network
  /// What a message counts on the links of its route, whose bandwidth is in payload of large messages: its own bytes,
  /// and between nodes with a transport the headers that it needs beyond those of a large message.
  [[nodiscard]] Bytes carried_bytes(EndpointId source, EndpointId destination, Bytes message) const;

  /// A cyclic order of the given ranks (of one node) whose narrowest hop over direct NVLinks is as wide as possible,
  /// the lexicographically first among equals. Where direct NVLinks form no cycle through all ranks (NVSwitch, PCIe),
  /// or for more than 16 ranks, it is the order of a walk through the PCIe tree, which crosses each switch and socket
  /// boundary as seldom as possible. Throws InternalError when a rank is no GPU of the same node.
  [[nodiscard]] std::vector<int> widest_ring(std::vector<int> ranks) const;

 private:
  struct Impl;
  static inline std::atomic<std::uint64_t> made_{0};
  std::uint64_t serial_ = ++made_;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace foretrain

// The hardware as a directed graph of links, and the routes through it.
//
// The wiring of one node is a Boost.Graph; its routes are found once (fewest hops, then most bandwidth) and shared by
// all nodes of its kind. A route between nodes is: source GPU → its nearest NIC → fabric → nearest card →
// destination GPU. Every physical link is two directed links (one for a half-duplex link), so that full duplex needs no
// special case. GPUs talk over NVLink where a direct link or an NVSwitch joins them, else over PCIe and the sockets.
// Without peer-to-peer access they talk through the memory of the source's socket. Each socket's memory is a link
// of its own, shared by reads and writes. Each card has one link to the fabric and one from it (line rate ×
// efficiency); with oversubscription o > 1 the node has one more of each: cards × bandwidth ÷ o. Behind the cards lies
// the fabric (fabric.hpp); a single switch does not block. Nodes with faults have routes of their own over the same
// links.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/base/number.hpp"
#include "model/hardware/fabric_routes.hpp"
#include "model/hardware/node_routes.hpp"
#include "model/hardware/route.hpp"

namespace foretrain {

/// Contents of a topology, for its own functions: tables of the nodes' kinds, and the fabric. All nodes of a group have
/// the same ones, but those with faults have their own; links are numbered node by node.
struct TopologyTables {
  /// Nodes of one kind.
  struct Group {
    Gpu gpu;
    NodeRoutes plain;
    CardMessages messages;
    Seconds network_latency;
    std::optional<Transport> transport;
    double payload_share = 1.0;  ///< of the transport
    int first_node = 0, first_gpu = 0, first_host = 0;
    LinkId first_link = 0;
    int gpus_per_node = 1, hosts_per_node = 1, links_per_node = 0;
  };
  std::vector<Group> groups;
  std::vector<NodeRoutes> faulty;
  std::vector<int> faulty_of_node;  ///< -1: plain; empty when there are no faults inside nodes
  std::unique_ptr<FabricRoutes> fabric;
  int nodes = 0, gpus = 0, hosts = 0;
  LinkId first_fabric_link = 0;
  bool switches_reduce = true;  ///< Network::in_network_reduction of all
  bool limits_connections = false;
  bool draws_routes = false;
  Sharing sharing;
  NcclVersion nccl;

  struct Place {
    int node = 0;
    int endpoint = 0;  ///< index in the local tables
  };

  /// The last group that begins at or before `number`, in the numbers that `first` counts.
  template <int Group::*first>
  [[nodiscard]] const Group& group_at(int number) const {
    const Group* at = &groups.back();
    while (at != groups.data() && at->*first > number) --at;
    return *at;
  }
  [[nodiscard]] const Group& group_of(int node) const { return group_at<&Group::first_node>(node); }
  [[nodiscard]] LinkId first_link(int node) const {
    const Group& group = group_of(node);
    return group.first_link + (node - group.first_node) * group.links_per_node;
  }
  [[nodiscard]] int node_of_link(LinkId link) const {
    const Group& group = group_at<&Group::first_link>(link);
    return group.first_node + (link - group.first_link) / group.links_per_node;
  }

  [[nodiscard]] Place place(EndpointId endpoint) const {
    if (endpoint < gpus) {
      const Group& group = group_at<&Group::first_gpu>(endpoint);
      const int gpu = endpoint - group.first_gpu;
      return {group.first_node + gpu / group.gpus_per_node, gpu % group.gpus_per_node};
    }
    const int number = (endpoint - gpus) % hosts;  // a server process is where its host is
    const Group& group = group_at<&Group::first_host>(number);
    const int host = number - group.first_host;
    return {group.first_node + host / group.hosts_per_node, group.plain.gpus + host % group.hosts_per_node};
  }

  [[nodiscard]] bool is_server(EndpointId endpoint) const { return endpoint >= gpus + hosts; }
  [[nodiscard]] bool is_outside(EndpointId endpoint) const { return endpoint >= gpus + 2 * hosts; }
  /// Appends links that summation crosses beyond the way into host memory.
  void append_summation(Place server, std::vector<LinkId>& links) const {
    const NodeRoutes& plain = group_of(server.node).plain;
    const std::size_t host = at_index(server.endpoint - plain.gpus);
    const LinkId shift = first_link(server.node);
    if (plain.memory_links[host] >= 0) links.insert(links.end(), 3, shift + plain.memory_links[host]);
    if (plain.summation_links[host] >= 0) links.push_back(shift + plain.summation_links[host]);
  }

  [[nodiscard]] const NodeRoutes& tables(int node) const {
    const int own = faulty_of_node.empty() ? -1 : faulty_of_node[at_index(node)];
    return own < 0 ? group_of(node).plain : faulty[at_index(own)];
  }

  void append_shifted(const Route& route, int node, std::vector<LinkId>& links) const {
    const LinkId shift = first_link(node);
    for (const LinkId link : route.links) links.push_back(shift + link);
  }

  /// The halves of a route between nodes, and where they meet the fabric.
  struct Crossing {
    const Route* exit;
    const Route* entry;
    FabricPort from, to;
  };
  /// Host memory near several cards uses them by turns, one for each peer.
  [[nodiscard]] Crossing crossing(Place from, Place to) const {
    const NodeRoutes& here = tables(from.node);
    const NodeRoutes& there = tables(to.node);
    const std::size_t e = at_index(from.endpoint), d = at_index(to.endpoint);
    const auto turn = [](Place peer, std::size_t ways) {
      return ways == 1 ? 0 : at_index(peer.node + peer.endpoint) % ways;
    };
    const std::size_t out = turn(to, here.exits[e].size()), in = turn(from, there.entries[d].size());
    return {&here.exits[e][out], &there.entries[d][in], {from.node, here.cards[e][out]}, {to.node, there.cards[d][in]}};
  }

  /// The half in the node of a way between one of its ends and what lies outside.
  void append_half(EndpointId source, EndpointId destination, std::vector<LinkId>& links) const {
    const bool out = is_outside(destination);
    const Place at = place(out ? source : destination);
    const int turn = (out ? destination : source) - gpus - 2 * hosts;
    const NodeRoutes& routes = tables(at.node);
    const std::vector<Route>& halves = (out ? routes.exits : routes.entries)[at_index(at.endpoint)];
    if (!halves.empty()) append_shifted(halves[at_index(turn) % halves.size()], at.node, links);
  }

  [[nodiscard]] Seconds latency(Place from, Place to) const {
    if (from.node == to.node) return tables(from.node).between(from.endpoint, to.endpoint).latency;
    const Crossing way = crossing(from, to);
    const Seconds network = std::max(group_of(from.node).network_latency, group_of(to.node).network_latency);
    return network + fabric->delay(way.from, way.to);
  }

  [[nodiscard]] BytesPerSecond most_rate(Place from, Place to) const {
    BytesPerSecond rate = BytesPerSecond::infinity();
    if (!limits_connections || from.node == to.node) return rate;
    const Crossing way = crossing(from, to);
    rate = fabric->most_rate(way.from, way.to);
    const Seconds round_trip = latency(from, to) + latency(to, from);
    for (const Place end : {from, to}) {
      const std::optional<Transport>& transport = group_of(end.node).transport;
      if (transport) rate = std::min(rate, connection_rate(*transport, round_trip));
    }
    return rate;
  }

  [[nodiscard]] const DirectedLink& node_link(LinkId id) const {
    const int node = node_of_link(id);
    return tables(node).links[at_index(id - first_link(node))];
  }

  void add_group(const NodeKind& kind) {
    const auto& [node, count, gpus_per_node, network] = kind;
    Group& group = groups.emplace_back();
    group.gpu = node.gpu;
    group.plain = find_node_routes(node, network);
    group.messages = network.messages;
    group.network_latency = network.latency;
    group.transport = network.transport;
    if (group.transport) {
      group.payload_share = payload_share(*group.transport);
      limits_connections = limits_connections || is_finite(connection_rate(*group.transport, Seconds(1.0)));
    }
    group.first_node = nodes;
    group.first_gpu = gpus;
    group.first_host = hosts;
    group.first_link = first_fabric_link;
    group.gpus_per_node = gpus_per_node;
    group.hosts_per_node = static_cast<int>(group.plain.host_names.size());
    group.links_per_node = static_cast<int>(group.plain.links.size());
    nodes += count;
    gpus += count * gpus_per_node;
    hosts += count * group.hosts_per_node;
    first_fabric_link += count * group.links_per_node;
    switches_reduce = switches_reduce && network.in_network_reduction;
  }

  void add_faults(const Cluster& cluster) {
    fabric->apply(cluster.faults, cluster.network.efficiency);
    for (const Fault& fault : cluster.faults) {
      if (fault.gpu >= 0 || fault.node < 0) continue;  // a GPU's links are as others'
      faulty_of_node.resize(at_index(nodes), -1);
      int& own = faulty_of_node[at_index(fault.node)];
      if (own >= 0) continue;  // its tables take all of the node's faults at once
      own = static_cast<int>(faulty.size());
      faulty.push_back(find_node_routes(cluster.node_at(fault.node), cluster.network_at(fault.node),
                                        faults_of_node(cluster, fault.node)));
    }
  }
};

class Topology {
 public:
  /// Throws ImpossiblePlan naming the unconnected vertices when the node is not connected. Throws it as well for more
  /// GPUs per node than the node has, for several nodes without NICs, and for a fabric or faults that cut an endpoint
  /// off. Readers of scenarios find such problems with the keys of the data file.
  explicit Topology(const Cluster& stated, RouteDraw draw = {});
  /// The cluster's, made once for those that a process asks for again and again.
  static Topology of(const Cluster& cluster);

  /// Whether chance chooses routes through the fabric: those of this topology are then what a planner sees, and each
  /// draw gives a topology of its own.
  [[nodiscard]] bool draws_routes() const { return tables_->draws_routes; }
  /// The links of the fabric are those from here on.
  [[nodiscard]] LinkId first_fabric_link() const { return tables_->first_fabric_link; }

  /// Copies share it; others that this process makes have other serials.
  [[nodiscard]] std::uint64_t serial() const { return serial_; }

  [[nodiscard]] int gpus() const { return tables_->gpus; }
  [[nodiscard]] int gpus_per_node() const { return tables_->groups.front().gpus_per_node; }  ///< of the first group
  [[nodiscard]] int nodes() const { return tables_->nodes; }
  /// CPU sockets that are endpoints; of the first group
  [[nodiscard]] int hosts_per_node() const { return tables_->groups.front().hosts_per_node; }
  [[nodiscard]] int hosts() const { return tables_->hosts; }  ///< of all nodes
  [[nodiscard]] int first_gpu(int node) const;
  [[nodiscard]] bool is_gpu(EndpointId endpoint) const { return endpoint < tables_->gpus; }
  [[nodiscard]] int node_of(EndpointId endpoint) const { return tables_->place(endpoint).node; }
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
  /// An endpoint behind the fabric that belongs to no node: a server of files. Data to and from it crosses the half of
  /// a route that is in the node, by the card whose turn `number` is.
  [[nodiscard]] EndpointId outside(int number) const { return gpus() + 2 * hosts() + number; }
  /// Memory traffic that the cores of a server's socket can cause: the memory's bandwidth, or what the cores reach.
  [[nodiscard]] BytesPerSecond summing_traffic_rate() const { return tables_->groups.front().plain.summing_traffic; }
  /// The card (0 … nics_per_node-1) through which a GPU leaves its node: the nearest; GPUs with the same nearest cards
  /// are spread evenly over them. -1 where the node has no cards.
  [[nodiscard]] int card_of_gpu(int rank) const;
  /// GPUs and hosts; server processes are the numbers beyond.
  [[nodiscard]] int endpoints() const { return gpus() + hosts(); }
  [[nodiscard]] std::string endpoint_name(EndpointId endpoint) const;

  /// Nodes of the same kind have equal links and routes inside: without faults -1 - their group, else a number of its
  /// own.
  [[nodiscard]] int kind_of_node(int node) const;
  /// An index of Cluster::groups; 0 where all nodes are alike.
  [[nodiscard]] int group_of_node(int node) const {
    return static_cast<int>(&tables_->group_of(node) - tables_->groups.data());
  }

  /// Whether a flow between GPUs meets the same when both are shifted by equally many nodes: all nodes are of one kind
  /// and the fabric is one switch.
  [[nodiscard]] bool nodes_are_alike() const;
  /// Whether flows between GPUs so many ranks further on meet the same: whole nodes, all alike.
  [[nodiscard]] bool repeats_after(int ranks) const { return ranks % gpus_per_node() == 0 && nodes_are_alike(); }

  /// Links are numbered node by node; a link has the same place in every node of a group. The fabric's links come after
  /// those of all nodes.
  [[nodiscard]] int links() const { return tables_->first_fabric_link + tables_->fabric->links(); }
  [[nodiscard]] int links_per_node() const { return tables_->groups.front().links_per_node; }  ///< of the first group
  [[nodiscard]] DirectedLink link(LinkId id) const;
  [[nodiscard]] BytesPerSecond link_bandwidth(LinkId id) const;
  [[nodiscard]] LinkKind link_kind(LinkId id) const {
    return id >= first_fabric_link() ? LinkKind::network : tables_->node_link(id).kind;
  }
  [[nodiscard]] bool in_network_reduction(LinkId id) const {
    return id >= first_fabric_link() ? tables_->switches_reduce : tables_->node_link(id).in_network_reduction;
  }
  [[nodiscard]] double collective_efficiency(LinkId id) const {
    return id >= first_fabric_link() ? 0.0 : tables_->node_link(id).collective_efficiency;
  }
  /// The datasheet of a node's GPUs, and what is known of its NICs.
  [[nodiscard]] const Gpu& gpu_model(int node) const { return tables_->group_of(node).gpu; }
  [[nodiscard]] const CardMessages& card_messages(int node) const { return tables_->group_of(node).messages; }

  [[nodiscard]] NcclVersion nccl() const { return tables_->nccl; }

  /// Transport between nodes if it is TCP; else null.
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
  [[nodiscard]] bool fabric_is_one_switch() const { return tables_->fabric->links() == 0; }
  /// Whether most_rate() is finite for some pair.
  [[nodiscard]] bool limits_connections() const { return tables_->limits_connections; }
  [[nodiscard]] const Sharing& sharing() const { return tables_->sharing; }  ///< as in Network
  /// Bytes that a message occupies on the links of its route, whose bandwidth is in payload of large messages. They are
  /// its own bytes and, between nodes with a transport, its additional headers.
  [[nodiscard]] Bytes carried_bytes(EndpointId source, EndpointId destination, Bytes message) const;

  /// A cyclic order of the given ranks (of one node) whose narrowest hop over direct NVLinks is as wide as possible,
  /// the lexicographically first among equals. Where direct NVLinks form no cycle through all ranks (NVSwitch, PCIe),
  /// or for more than 16 ranks, it walks the PCIe tree. That walk crosses each switch and socket boundary as seldom as
  /// possible. Throws InternalError when a rank is no GPU of the same node.
  [[nodiscard]] std::vector<int> widest_ring(std::vector<int> ranks) const;

 private:
  static inline std::atomic<std::uint64_t> made_{0};
  std::uint64_t serial_ = ++made_;
  std::shared_ptr<const TopologyTables> tables_;
};

}  // namespace foretrain

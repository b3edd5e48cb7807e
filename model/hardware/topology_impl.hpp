// What a topology holds: routes inside nodes, by their kinds, and the fabric. For topology*.cpp alone.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "model/base/number.hpp"
#include "model/hardware/fabric_routes.hpp"
#include "model/hardware/node_routes.hpp"
#include "model/hardware/topology.hpp"

namespace foretrain {

/// Tables of the nodes' kinds. All nodes of a group have the same ones, but those with faults have their own; links are
/// numbered node by node.
struct Topology::Impl {
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
  /// What adding up crosses beyond the way into host memory.
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

  void add_group(const Node& node, const Network& network, int count, int gpus_per_node) {
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

}  // namespace foretrain

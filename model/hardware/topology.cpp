#include "model/hardware/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "model/base/number.hpp"
#include "model/hardware/check.hpp"
#include "model/hardware/fabric_routes.hpp"
#include "model/hardware/node_routes.hpp"
#include "model/hardware/ring_order.hpp"

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
  Sharing sharing;

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

  [[nodiscard]] Seconds latency(Place from, Place to) const {
    if (from.node == to.node) return tables(from.node).between(from.endpoint, to.endpoint).latency;
    const Crossing way = crossing(from, to);
    const Seconds network = std::max(group_of(from.node).network_latency, group_of(to.node).network_latency);
    return network + fabric->delay(way.from, way.to);
  }

  [[nodiscard]] BytesPerSecond most_rate(Place from, Place to) const {
    BytesPerSecond rate = BytesPerSecond::infinity();
    if (!limits_connections || from.node == to.node) return rate;
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
    for (Fault fault : cluster.faults) {
      if (fault.gpu >= 0) continue;  // its links are as others'
      if (fault.node < 0) {
        fault.bandwidth *= cluster.network.efficiency;  // stated as a line rate
        for (LinkId link = 0; link < fabric->links(); ++link) {
          if (fault.concerns(fabric->link_name(link))) {
            fabric->set_bandwidth(link, fault.left_of(fabric->bandwidth(link)));
          }
        }
        continue;
      }
      faulty_of_node.resize(at_index(nodes), -1);
      int& own = faulty_of_node[at_index(fault.node)];
      if (own >= 0) continue;  // its tables take all of the node's faults at once
      own = static_cast<int>(faulty.size());
      faulty.push_back(find_node_routes(cluster.node_at(fault.node), cluster.network_at(fault.node),
                                        faults_of_node(cluster, fault.node)));
    }
  }
};

namespace {

void require_possible(const Node& node, const Network& network, int gpus_per_node, int nodes) {
  if (gpus_per_node < 1 || gpus_per_node > node.gpus) {
    throw std::invalid_argument(
        fmt::format("{}: {} GPUs per node asked for, but the node has {}", node.name, gpus_per_node, node.gpus));
  }
  if (nodes > 1 && network.nics_per_node < 1) {
    throw std::invalid_argument(fmt::format("{}: {} nodes need network cards", node.name, nodes));
  }
}

}  // namespace

Topology::Topology(const Cluster& cluster) {
  if (cluster.nodes < 1) throw std::invalid_argument("a cluster needs at least one node");
  require_possible(cluster.node, cluster.network, cluster.gpus_per_node, cluster.nodes);
  for (const NodeGroup& group : cluster.groups) {
    require_possible(group.node, group.network, group.gpus_per_node, cluster.nodes);
  }
  if (const auto problem = check_network(cluster)) {
    throw std::invalid_argument(fmt::format("{}: {}; {}", problem->key, problem->text, problem->expected));
  }
  const auto impl = std::make_shared<Impl>();
  if (cluster.groups.empty()) impl->add_group(cluster.node, cluster.network, cluster.nodes, cluster.gpus_per_node);
  for (const NodeGroup& group : cluster.groups) {
    impl->add_group(group.node, group.network, group.nodes, group.gpus_per_node);
  }
  impl->fabric = make_fabric_routes(cluster);
  impl->add_faults(cluster);
  impl->sharing = cluster.network.sharing;
  impl_ = impl;
}

int Topology::gpus() const { return impl_->gpus; }
int Topology::gpus_per_node() const { return impl_->groups.front().gpus_per_node; }
int Topology::nodes() const { return impl_->nodes; }
int Topology::hosts_per_node() const { return impl_->groups.front().hosts_per_node; }
int Topology::hosts() const { return impl_->hosts; }
int Topology::node_of(EndpointId endpoint) const { return impl_->place(endpoint).node; }
bool Topology::is_gpu(EndpointId endpoint) const { return endpoint < impl_->gpus; }

EndpointId Topology::host_of_gpu(int rank) const {
  const Impl::Place place = impl_->place(rank);
  return host(place.node, impl_->tables(place.node).host_of_gpu[at_index(place.endpoint)]);
}

EndpointId Topology::host(int node, int socket) const {
  const Impl::Group& group = impl_->group_of(node);
  return gpus() + group.first_host + (node - group.first_node) * group.hosts_per_node + socket;
}
int Topology::first_gpu(int node) const {
  const Impl::Group& group = impl_->group_of(node);
  return group.first_gpu + (node - group.first_node) * group.gpus_per_node;
}
int Topology::endpoints() const { return gpus() + hosts(); }
BytesPerSecond Topology::summing_traffic_rate() const { return impl_->groups.front().plain.summing_traffic; }

int Topology::card_of_gpu(int rank) const {
  const Impl::Place place = impl_->place(rank);
  const std::vector<int>& cards = impl_->tables(place.node).cards[at_index(place.endpoint)];
  return cards.empty() ? -1 : cards.front();
}

std::string Topology::endpoint_name(EndpointId endpoint) const {
  const Impl::Place place = impl_->place(endpoint);
  const NodeRoutes& plain = impl_->group_of(place.node).plain;
  const std::string name = place.endpoint < plain.gpus ? fmt::format("gpu{}", place.endpoint)
                                                       : plain.host_names[at_index(place.endpoint - plain.gpus)];
  const std::string role = impl_->is_server(endpoint) ? " server" : "";
  return (nodes() == 1 ? name : fmt::format("node{}/{}", place.node, name)) + role;
}

int Topology::kind_of_node(int node) const {
  const int faulty = impl_->faulty_of_node.empty() ? -1 : impl_->faulty_of_node[at_index(node)];
  return faulty >= 0 ? faulty : -1 - group_of_node(node);
}
int Topology::group_of_node(int node) const { return static_cast<int>(&impl_->group_of(node) - impl_->groups.data()); }

bool Topology::nodes_are_alike() const {
  const std::vector<int>& kinds = impl_->faulty_of_node;
  return impl_->groups.size() == 1 && fabric_is_one_switch() &&
         std::ranges::all_of(kinds, [&](int kind) { return kind == kinds.front(); });
}

int Topology::links() const { return impl_->first_fabric_link + impl_->fabric->links(); }
int Topology::links_per_node() const { return impl_->groups.front().links_per_node; }

DirectedLink Topology::link(LinkId id) const {
  const LinkId in_fabric = id - impl_->first_fabric_link;
  if (in_fabric >= 0) {
    return {impl_->fabric->link_name(in_fabric), LinkKind::network, impl_->fabric->bandwidth(in_fabric),
            impl_->switches_reduce};
  }
  DirectedLink link = impl_->node_link(id);
  if (nodes() > 1) link.name = fmt::format("node{}/{}", impl_->node_of_link(id), link.name);
  return link;
}

BytesPerSecond Topology::link_bandwidth(LinkId id) const {
  const LinkId in_fabric = id - impl_->first_fabric_link;
  return in_fabric >= 0 ? impl_->fabric->bandwidth(in_fabric) : impl_->node_link(id).bandwidth;
}

LinkKind Topology::link_kind(LinkId id) const {
  return id >= impl_->first_fabric_link ? LinkKind::network : impl_->node_link(id).kind;
}

bool Topology::in_network_reduction(LinkId id) const {
  return id >= impl_->first_fabric_link ? impl_->switches_reduce : impl_->node_link(id).in_network_reduction;
}

double Topology::collective_efficiency(LinkId id) const {
  return id >= impl_->first_fabric_link ? 0.0 : impl_->node_link(id).collective_efficiency;
}

const Gpu& Topology::gpu_model(int node) const { return impl_->group_of(node).gpu; }
const CardMessages& Topology::card_messages(int node) const { return impl_->group_of(node).messages; }
int Topology::tcp_streams(int node) const {
  const std::optional<Transport>& transport = impl_->group_of(node).transport;
  return transport && transport->protocol == Protocol::tcp ? transport->streams : 0;
}

Route Topology::route(EndpointId source, EndpointId destination) const {
  Route route;
  append_route(source, destination, route.links);
  const Impl::Place from = impl_->place(source), to = impl_->place(destination);
  route.latency = impl_->latency(from, to);
  if (from.node == to.node) {
    route.bandwidth = impl_->tables(from.node).between(from.endpoint, to.endpoint).bandwidth;
  } else {
    const Impl::Crossing way = impl_->crossing(from, to);
    route.bandwidth = std::min(way.exit->bandwidth, way.entry->bandwidth);
    for (const LinkId link : route.links) {
      if (link >= impl_->first_fabric_link) route.bandwidth = std::min(route.bandwidth, link_bandwidth(link));
    }
    route.most_rate = impl_->most_rate(from, to);
  }
  if (impl_->is_server(destination)) {
    for (const LinkId link : route.links) {
      const auto times = std::count(route.links.begin(), route.links.end(), link);
      route.bandwidth = std::min(route.bandwidth, link_bandwidth(link) / number(times));
    }
  }
  return route;
}

void Topology::append_route(EndpointId source, EndpointId destination, std::vector<LinkId>& links) const {
  const Impl::Place from = impl_->place(source), to = impl_->place(destination);
  if (from.node == to.node) {
    impl_->append_shifted(impl_->tables(from.node).between(from.endpoint, to.endpoint), from.node, links);
  } else {
    const Impl::Crossing way = impl_->crossing(from, to);
    impl_->append_shifted(*way.exit, from.node, links);
    impl_->fabric->append(way.from, way.to, impl_->first_fabric_link, links);
    impl_->append_shifted(*way.entry, to.node, links);
  }
  if (impl_->is_server(destination)) impl_->append_summation(to, links);
}

Seconds Topology::latency(EndpointId source, EndpointId destination) const {
  return impl_->latency(impl_->place(source), impl_->place(destination));
}

bool Topology::fabric_is_one_switch() const { return impl_->fabric->links() == 0; }

const Sharing& Topology::sharing() const { return impl_->sharing; }
bool Topology::limits_connections() const { return impl_->limits_connections; }

BytesPerSecond Topology::most_rate(EndpointId source, EndpointId destination) const {
  if (!impl_->limits_connections) return BytesPerSecond::infinity();
  return impl_->most_rate(impl_->place(source), impl_->place(destination));
}

Bytes Topology::carried_bytes(EndpointId source, EndpointId destination, Bytes message) const {
  const Impl::Group& group = impl_->group_of(node_of(source));
  if (!group.transport || !(message > Bytes(0.0)) || node_of(source) == node_of(destination)) return message;
  return std::max(message, wire_bytes(message, *group.transport) * group.payload_share);
}

std::vector<int> Topology::widest_ring(const std::vector<int>& ranks, const std::vector<LinkId>& used_links) const {
  if (ranks.empty()) return {};
  const int node = node_of(ranks.front());
  const NodeRoutes& local = impl_->tables(node);
  std::vector<int> members = ranks;
  std::sort(members.begin(), members.end());
  for (const int rank : members) {
    if (rank < 0 || rank >= gpus() || node_of(rank) != node) {
      throw std::invalid_argument("widest_ring: the ranks must be GPUs of one node");
    }
  }
  const std::unordered_set<LinkId> used(used_links.begin(), used_links.end());

  // Direct NVLinks are worth a search; a switch or a PCIe tree carries any order, so the natural one will do.
  if (static_cast<int>(members.size()) <= widest_cycle_limit) {
    std::vector<std::vector<BytesPerSecond>> capacity(members.size(), std::vector<BytesPerSecond>(members.size()));
    for (std::size_t a = 0; a < members.size(); ++a) {
      for (std::size_t b = 0; b < members.size(); ++b) {
        const LinkId link = local.direct_nvlink(impl_->place(members[a]).endpoint, impl_->place(members[b]).endpoint);
        if (link < 0 || used.contains(impl_->first_link(node) + link)) continue;
        capacity[a][b] = local.links[at_index(link)].bandwidth;
      }
    }
    std::vector<int> ring;
    for (const int member : widest_cycle(capacity)) ring.push_back(members[at_index(member)]);
    if (!ring.empty()) return ring;
  }

  std::ranges::sort(members, {}, [&](int rank) { return local.tree_position[at_index(impl_->place(rank).endpoint)]; });
  std::vector<LinkId> taken;
  for (std::size_t i = 0; i < members.size(); ++i) append_route(members[i], members[(i + 1) % members.size()], taken);
  const bool free = std::none_of(taken.begin(), taken.end(), [&](LinkId link) { return used.contains(link); });
  return free ? members : std::vector<int>{};
}

}  // namespace foretrain

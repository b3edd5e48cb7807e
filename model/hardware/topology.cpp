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
/// One node's tables; every node has the same, with its link ids shifted by node · links_per_node. Nodes with faults
/// have tables of their own.
struct Topology::Impl {
  Gpu gpu;
  NodeRoutes plain;
  std::vector<NodeRoutes> faulty;
  std::vector<int> faulty_of_node;  ///< -1: plain; empty when there are no faults inside nodes
  std::unique_ptr<FabricRoutes> fabric;
  int nodes = 1;
  int gpus_per_node = 1;
  int hosts_per_node = 1;
  int links_per_node = 0;
  Seconds network_latency;
  CardMessages card_messages;
  bool switches_reduce = false;  ///< Network::in_network_reduction
  std::optional<Transport> transport;
  double payload_share = 1.0;  ///< of the transport
  bool limits_connections = false;

  struct Place {
    int node = 0;
    int endpoint = 0;  ///< index in the local tables
  };

  [[nodiscard]] int gpus() const { return nodes * gpus_per_node; }
  [[nodiscard]] Place place(EndpointId endpoint) const {
    if (endpoint < gpus()) return {endpoint / gpus_per_node, endpoint % gpus_per_node};
    const int host = (endpoint - gpus()) % (nodes * hosts_per_node);  // a server process is where its host is
    return {host / hosts_per_node, plain.gpus + host % hosts_per_node};
  }

  [[nodiscard]] bool is_server(EndpointId endpoint) const { return endpoint >= gpus() + nodes * hosts_per_node; }
  /// What adding up crosses beyond the way into host memory.
  void append_summation(Place server, std::vector<LinkId>& links) const {
    const std::size_t host = at_index(server.endpoint - plain.gpus);
    const int shift = server.node * links_per_node;
    if (plain.memory_links[host] >= 0) links.insert(links.end(), 3, shift + plain.memory_links[host]);
    if (plain.summation_links[host] >= 0) links.push_back(shift + plain.summation_links[host]);
  }

  [[nodiscard]] const NodeRoutes& tables(int node) const {
    const int own = faulty_of_node.empty() ? -1 : faulty_of_node[at_index(node)];
    return own < 0 ? plain : faulty[at_index(own)];
  }

  [[nodiscard]] LinkId first_fabric_link() const { return nodes * links_per_node; }

  void append_shifted(const Route& route, int node, std::vector<LinkId>& links) const {
    for (const LinkId link : route.links) links.push_back(node * links_per_node + link);
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
    return network_latency + fabric->delay(way.from, way.to);
  }

  /// The bandwidth of a link of a node, by local id.
  [[nodiscard]] const DirectedLink& node_link(LinkId id) const {
    return tables(id / links_per_node).links[at_index(id % links_per_node)];
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
      faulty.push_back(find_node_routes(cluster.node, cluster.network, faults_of_node(cluster, fault.node)));
    }
  }
};

Topology::Topology(const Cluster& cluster) : impl_(std::make_unique<Impl>()) {
  const Node& node = cluster.node;
  if (cluster.nodes < 1) throw std::invalid_argument("a cluster needs at least one node");
  if (cluster.gpus_per_node < 1 || cluster.gpus_per_node > node.gpus) {
    throw std::invalid_argument(fmt::format("{}: {} GPUs per node asked for, but the node has {}", node.name,
                                            cluster.gpus_per_node, node.gpus));
  }
  if (cluster.nodes > 1 && cluster.network.nics_per_node < 1) {
    throw std::invalid_argument(fmt::format("{}: {} nodes need network cards", node.name, cluster.nodes));
  }
  if (const auto problem = check_network(cluster)) {
    throw std::invalid_argument(fmt::format("{}: {}; {}", problem->key, problem->text, problem->expected));
  }
  impl_->gpu = node.gpu;
  impl_->plain = find_node_routes(node, cluster.network);
  impl_->nodes = cluster.nodes;
  impl_->gpus_per_node = cluster.gpus_per_node;
  impl_->hosts_per_node = static_cast<int>(impl_->plain.host_names.size());
  impl_->links_per_node = static_cast<int>(impl_->plain.links.size());
  impl_->network_latency = cluster.network.latency;
  impl_->card_messages = cluster.network.messages;
  impl_->switches_reduce = cluster.network.in_network_reduction;
  impl_->fabric = make_fabric_routes(cluster);
  impl_->transport = cluster.network.transport;
  if (impl_->transport) {
    impl_->payload_share = payload_share(*impl_->transport);
    impl_->limits_connections = is_finite(connection_rate(*impl_->transport, Seconds(1.0)));
  }
  impl_->add_faults(cluster);
}

Topology::~Topology() = default;
Topology::Topology(Topology&&) noexcept = default;
Topology& Topology::operator=(Topology&&) noexcept = default;

int Topology::gpus() const { return impl_->gpus(); }
int Topology::gpus_per_node() const { return impl_->gpus_per_node; }
int Topology::nodes() const { return impl_->nodes; }
int Topology::hosts_per_node() const { return impl_->hosts_per_node; }
int Topology::node_of(EndpointId endpoint) const { return impl_->place(endpoint).node; }
bool Topology::is_gpu(EndpointId endpoint) const { return endpoint < impl_->gpus(); }

EndpointId Topology::host_of_gpu(int rank) const {
  const Impl::Place place = impl_->place(rank);
  return host(place.node, impl_->tables(place.node).host_of_gpu[at_index(place.endpoint)]);
}

EndpointId Topology::host(int node, int socket) const { return gpus() + node * impl_->hosts_per_node + socket; }
int Topology::endpoints() const { return gpus() + nodes() * impl_->hosts_per_node; }
BytesPerSecond Topology::summing_traffic_rate() const { return impl_->plain.summing_traffic; }

int Topology::card_of_gpu(int rank) const {
  const Impl::Place place = impl_->place(rank);
  const std::vector<int>& cards = impl_->tables(place.node).cards[at_index(place.endpoint)];
  return cards.empty() ? -1 : cards.front();
}

std::string Topology::endpoint_name(EndpointId endpoint) const {
  const Impl::Place place = impl_->place(endpoint);
  const std::string name = place.endpoint < impl_->plain.gpus
                               ? fmt::format("gpu{}", place.endpoint)
                               : impl_->plain.host_names[at_index(place.endpoint - impl_->plain.gpus)];
  const std::string role = impl_->is_server(endpoint) ? " server" : "";
  return (nodes() == 1 ? name : fmt::format("node{}/{}", place.node, name)) + role;
}

int Topology::kind_of_node(int node) const {
  return impl_->faulty_of_node.empty() ? -1 : impl_->faulty_of_node[at_index(node)];
}

bool Topology::nodes_are_alike() const {
  const std::vector<int>& kinds = impl_->faulty_of_node;
  return fabric_is_one_switch() && std::ranges::all_of(kinds, [&](int kind) { return kind == kinds.front(); });
}

int Topology::links() const { return impl_->first_fabric_link() + impl_->fabric->links(); }
int Topology::links_per_node() const { return impl_->links_per_node; }

DirectedLink Topology::link(LinkId id) const {
  const LinkId in_fabric = id - impl_->first_fabric_link();
  if (in_fabric >= 0) {
    return {impl_->fabric->link_name(in_fabric), LinkKind::network, impl_->fabric->bandwidth(in_fabric),
            impl_->switches_reduce};
  }
  DirectedLink link = impl_->node_link(id);
  if (nodes() > 1) link.name = fmt::format("node{}/{}", id / impl_->links_per_node, link.name);
  return link;
}

BytesPerSecond Topology::link_bandwidth(LinkId id) const {
  const LinkId in_fabric = id - impl_->first_fabric_link();
  return in_fabric >= 0 ? impl_->fabric->bandwidth(in_fabric) : impl_->node_link(id).bandwidth;
}

LinkKind Topology::link_kind(LinkId id) const {
  return id >= impl_->first_fabric_link() ? LinkKind::network : impl_->node_link(id).kind;
}

bool Topology::in_network_reduction(LinkId id) const {
  return id >= impl_->first_fabric_link() ? impl_->switches_reduce : impl_->node_link(id).in_network_reduction;
}

double Topology::collective_efficiency(LinkId id) const {
  return id >= impl_->first_fabric_link() ? 0.0 : impl_->node_link(id).collective_efficiency;
}

const Gpu& Topology::gpu_model() const { return impl_->gpu; }
const CardMessages& Topology::card_messages() const { return impl_->card_messages; }
int Topology::tcp_streams() const {
  const std::optional<Transport>& transport = impl_->transport;
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
      if (link >= impl_->first_fabric_link()) route.bandwidth = std::min(route.bandwidth, link_bandwidth(link));
    }
    route.most_rate = most_rate(source, destination);
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
    impl_->fabric->append(way.from, way.to, impl_->first_fabric_link(), links);
    impl_->append_shifted(*way.entry, to.node, links);
  }
  if (impl_->is_server(destination)) impl_->append_summation(to, links);
}

Seconds Topology::latency(EndpointId source, EndpointId destination) const {
  return impl_->latency(impl_->place(source), impl_->place(destination));
}

bool Topology::fabric_is_one_switch() const { return impl_->fabric->links() == 0; }

bool Topology::limits_connections() const { return impl_->limits_connections; }

BytesPerSecond Topology::most_rate(EndpointId source, EndpointId destination) const {
  if (!impl_->limits_connections) return BytesPerSecond::infinity();
  const Impl::Place from = impl_->place(source), to = impl_->place(destination);
  if (from.node == to.node) return BytesPerSecond::infinity();
  return connection_rate(*impl_->transport, impl_->latency(from, to) + impl_->latency(to, from));
}

Bytes Topology::carried_bytes(EndpointId source, EndpointId destination, Bytes message) const {
  if (!impl_->transport || !(message > Bytes(0.0)) || node_of(source) == node_of(destination)) return message;
  return std::max(message, wire_bytes(message, *impl_->transport) * impl_->payload_share);
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
        if (link < 0 || used.contains(node * impl_->links_per_node + link)) continue;
        capacity[a][b] = local.links[at_index(link)].bandwidth;
      }
    }
    std::vector<int> ring;
    for (const int member : widest_cycle(capacity)) ring.push_back(members[at_index(member)]);
    if (!ring.empty()) return ring;
  }

  std::sort(members.begin(), members.end(), [&](int a, int b) {
    return local.tree_position[at_index(impl_->place(a).endpoint)] <
           local.tree_position[at_index(impl_->place(b).endpoint)];
  });
  std::vector<LinkId> taken;
  for (std::size_t i = 0; i < members.size(); ++i) append_route(members[i], members[(i + 1) % members.size()], taken);
  const bool free = std::none_of(taken.begin(), taken.end(), [&](LinkId link) { return used.contains(link); });
  return free ? members : std::vector<int>{};
}

}  // namespace foretrain

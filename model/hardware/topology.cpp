#include "model/hardware/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/session.hpp"
#include "model/hardware/check.hpp"
#include "model/hardware/ring_order.hpp"
#include "model/hardware/topology_impl.hpp"

namespace foretrain {
namespace {

void require_possible(const Node& node, const Network& network, int gpus_per_node, int nodes) {
  if (gpus_per_node < 1 || gpus_per_node > node.gpus) {
    throw ImpossiblePlan(
        fmt::format("{}: {} GPUs per node asked for, but the node has {}", node.name, gpus_per_node, node.gpus));
  }
  if (nodes > 1 && network.nics_per_node < 1) {
    throw ImpossiblePlan(fmt::format("{}: {} nodes need network cards", node.name, nodes));
  }
}

struct TopologyKey {
  using Value = const Topology;
  Cluster cluster;

  bool operator==(const TopologyKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(cluster); }
  static std::uint64_t hash_of(const Cluster& cluster) {
    const Network& network = cluster.network;
    return foretrain::hash_of(cluster.node.name, cluster.nodes, cluster.gpus_per_node, cluster.groups.size(),
                              cluster.faults.size(), network.nics_per_node, network.nic_bandwidth, network.latency,
                              network.efficiency, network.oversubscription);
  }
  [[nodiscard]] std::size_t bytes(const Topology& topology) const {
    return 100'000 + 100 * at_index(topology.links() - topology.nodes() * topology.links_per_node()) +
           1000 * at_index(topology.nodes());
  }
};

}  // namespace

Topology::Topology(const Cluster& stated, RouteDraw draw) {
  const Cluster cluster = stated.at_its_size();
  if (cluster.nodes < 1) throw ImpossiblePlan("a cluster needs at least one node");
  require_possible(cluster.node, cluster.network, cluster.gpus_per_node, cluster.nodes);
  for (const NodeGroup& group : cluster.groups) {
    require_possible(group.node, group.network, group.gpus_per_node, cluster.nodes);
  }
  if (const auto problem = check_network(cluster)) {
    throw ImpossiblePlan(fmt::format("{}; {}", problem->text, problem->expected), "cluster." + problem->key);
  }
  const auto impl = std::make_shared<Impl>();
  if (cluster.groups.empty()) impl->add_group(cluster.node, cluster.network, cluster.nodes, cluster.gpus_per_node);
  for (const NodeGroup& group : cluster.groups) {
    impl->add_group(group.node, group.network, group.nodes, group.gpus_per_node);
  }
  impl->nccl = cluster.nccl;
  impl->fabric = make_fabric_routes(cluster, draw);
  impl->draws_routes = foretrain::draws_routes(cluster) && !draw;
  impl->limits_connections = impl->limits_connections || impl->fabric->limits_connections();
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
const Transport* Topology::tcp(int node) const {
  const std::optional<Transport>& transport = impl_->group_of(node).transport;
  return transport && transport->protocol == Protocol::tcp ? &*transport : nullptr;
}

Route Topology::route(EndpointId source, EndpointId destination) const {
  Route route;
  append_route(source, destination, route.links);
  if (impl_->is_outside(source) || impl_->is_outside(destination)) {
    route.bandwidth = BytesPerSecond::infinity();
    for (const LinkId link : route.links) route.bandwidth = std::min(route.bandwidth, link_bandwidth(link));
    return route;
  }
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
  if (impl_->is_outside(source) || impl_->is_outside(destination)) {
    return impl_->append_half(source, destination, links);
  }
  const Impl::Place from = impl_->place(source), to = impl_->place(destination);
  if (from.node == to.node) {
    impl_->append_shifted(impl_->tables(from.node).between(from.endpoint, to.endpoint), from.node, links);
  } else {
    const Impl::Crossing way = impl_->crossing(from, to);
    impl_->append_shifted(*way.exit, from.node, links);
    const auto connection = static_cast<std::uint64_t>(source) << 32U | static_cast<std::uint64_t>(destination);
    impl_->fabric->append(way.from, way.to, connection, impl_->first_fabric_link, links);
    impl_->append_shifted(*way.entry, to.node, links);
  }
  if (impl_->is_server(destination)) impl_->append_summation(to, links);
}

Seconds Topology::latency(EndpointId source, EndpointId destination) const {
  return impl_->latency(impl_->place(source), impl_->place(destination));
}

bool Topology::fabric_is_one_switch() const { return impl_->fabric->links() == 0; }

bool Topology::draws_routes() const { return impl_->draws_routes; }

LinkId Topology::first_fabric_link() const { return impl_->first_fabric_link; }

const Sharing& Topology::sharing() const { return impl_->sharing; }

NcclVersion Topology::nccl() const { return impl_->nccl; }

bool Topology::limits_connections() const { return impl_->limits_connections; }

BytesPerSecond Topology::most_rate(EndpointId source, EndpointId destination) const {
  const bool inside = !impl_->is_outside(source) && !impl_->is_outside(destination);
  if (!impl_->limits_connections || !inside) return BytesPerSecond::infinity();
  return impl_->most_rate(impl_->place(source), impl_->place(destination));
}

Bytes Topology::carried_bytes(EndpointId source, EndpointId destination, Bytes message) const {
  const Impl::Group& group = impl_->group_of(node_of(source));
  if (!group.transport || !(message > Bytes(0.0)) || node_of(source) == node_of(destination)) return message;
  return std::max(message, wire_bytes(message, *group.transport) * group.payload_share);
}

std::vector<int> Topology::widest_ring(std::vector<int> ranks) const {
  if (ranks.empty()) return {};
  const int node = node_of(ranks.front());
  const NodeRoutes& local = impl_->tables(node);
  std::ranges::sort(ranks);
  for (const int rank : ranks) {
    if (rank < 0 || rank >= gpus() || node_of(rank) != node) {
      throw InternalError("widest_ring: the ranks must be GPUs of one node");
    }
  }
  const auto direct_nvlink = [&](int a, int b) {
    return local.direct_nvlink(impl_->place(a).endpoint, impl_->place(b).endpoint);
  };
  // Direct NVLinks are worth a search; a switch or a PCIe tree carries any order, so the natural one will do.
  if (ranks.size() <= widest_cycle_limit) {
    std::vector<std::vector<BytesPerSecond>> capacity(ranks.size(), std::vector<BytesPerSecond>(ranks.size()));
    for (std::size_t a = 0; a < ranks.size(); ++a) {
      for (std::size_t b = 0; b < ranks.size(); ++b) {
        const LinkId link = direct_nvlink(ranks[a], ranks[b]);
        if (link >= 0) capacity[a][b] = local.links[at_index(link)].bandwidth;
      }
    }
    std::vector<int> ring;
    for (const int place : widest_cycle(capacity)) ring.push_back(ranks[at_index(place)]);
    if (!ring.empty()) return ring;
  }
  std::ranges::sort(ranks, {}, [&](int rank) { return local.tree_position[at_index(impl_->place(rank).endpoint)]; });
  // Bridged pairs stay neighbours.
  for (auto at = ranks.begin(); at != ranks.end(); ++at) {
    const auto partner = std::find_if(at + 1, ranks.end(), [&](int other) { return direct_nvlink(*at, other) >= 0; });
    if (partner != ranks.end()) std::rotate(at + 1, partner, partner + 1);
  }
  return ranks;
}

Topology Topology::of(const Cluster& cluster) {
  const auto same = [&cluster](const TopologyKey& key) { return key.cluster == cluster; };
  if (const auto known = session().find<TopologyKey>(TopologyKey::hash_of(cluster), same)) return *known;
  return *session().keep(TopologyKey{cluster}, Topology(cluster));
}

}  // namespace foretrain

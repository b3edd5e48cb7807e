#include "model/hardware/topology.hpp"

#include <fmt/format.h>

#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "model/base/session.hpp"
#include "model/hardware/check.hpp"
#include "model/hardware/ring_order.hpp"

namespace foretrain {
namespace {

void require_possible(const NodeKind& kind, int nodes) {
  const Node& node = kind.node;
  if (kind.gpus_per_node < 1 || kind.gpus_per_node > node.gpus) {
    throw ImpossiblePlan(
        fmt::format("{}: {} GPUs per node asked for, but the node has {}", node.name, kind.gpus_per_node, node.gpus));
  }
  if (nodes > 1 && kind.network.nics_per_node < 1) {
    throw ImpossiblePlan(fmt::format("{}: {} nodes need NICs", node.name, nodes));
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
  for (const NodeKind& kind : cluster.kinds()) require_possible(kind, cluster.nodes);
  if (const auto problem = check_network(cluster)) {
    throw ImpossiblePlan(fmt::format("{}; {}", problem->text, problem->expected), "cluster." + problem->key);
  }
  const auto tables = std::make_shared<TopologyTables>();
  for (const NodeKind& kind : cluster.kinds()) tables->add_group(kind);
  tables->nccl = cluster.nccl;
  tables->fabric = make_fabric_routes(cluster, draw);
  tables->draws_routes = foretrain::draws_routes(cluster) && !draw;
  tables->limits_connections = tables->limits_connections || tables->fabric->limits_connections();
  tables->add_faults(cluster);
  tables->sharing = cluster.network.sharing;
  tables_ = tables;
}

EndpointId Topology::host_of_gpu(int rank) const {
  const TopologyTables::Place place = tables_->place(rank);
  return host(place.node, tables_->tables(place.node).host_of_gpu[at_index(place.endpoint)]);
}

EndpointId Topology::host(int node, int socket) const {
  const TopologyTables::Group& group = tables_->group_of(node);
  return gpus() + group.first_host + (node - group.first_node) * group.hosts_per_node + socket;
}
int Topology::first_gpu(int node) const {
  const TopologyTables::Group& group = tables_->group_of(node);
  return group.first_gpu + (node - group.first_node) * group.gpus_per_node;
}

int Topology::card_of_gpu(int rank) const {
  const TopologyTables::Place place = tables_->place(rank);
  const std::vector<int>& cards = tables_->tables(place.node).cards[at_index(place.endpoint)];
  return cards.empty() ? -1 : cards.front();
}

std::string Topology::endpoint_name(EndpointId endpoint) const {
  const TopologyTables::Place place = tables_->place(endpoint);
  const NodeRoutes& plain = tables_->group_of(place.node).plain;
  const std::string name = place.endpoint < plain.gpus ? fmt::format("gpu{}", place.endpoint)
                                                       : plain.host_names[at_index(place.endpoint - plain.gpus)];
  const std::string role = tables_->is_server(endpoint) ? " server" : "";
  return (nodes() == 1 ? name : fmt::format("node{}/{}", place.node, name)) + role;
}

int Topology::kind_of_node(int node) const {
  const int faulty = tables_->faulty_of_node.empty() ? -1 : tables_->faulty_of_node[at_index(node)];
  return faulty >= 0 ? faulty : -1 - group_of_node(node);
}

bool Topology::nodes_are_alike() const {
  const std::vector<int>& kinds = tables_->faulty_of_node;
  return tables_->groups.size() == 1 && fabric_is_one_switch() &&
         std::ranges::all_of(kinds, [&](int kind) { return kind == kinds.front(); });
}

DirectedLink Topology::link(LinkId id) const {
  const LinkId in_fabric = id - tables_->first_fabric_link;
  if (in_fabric >= 0) {
    return {tables_->fabric->link_name(in_fabric), LinkKind::network, tables_->fabric->bandwidth(in_fabric),
            tables_->switches_reduce};
  }
  DirectedLink link = tables_->node_link(id);
  if (nodes() > 1) link.name = fmt::format("node{}/{}", tables_->node_of_link(id), link.name);
  return link;
}

BytesPerSecond Topology::link_bandwidth(LinkId id) const {
  const LinkId in_fabric = id - tables_->first_fabric_link;
  return in_fabric >= 0 ? tables_->fabric->bandwidth(in_fabric) : tables_->node_link(id).bandwidth;
}

const Transport* Topology::tcp(int node) const {
  const std::optional<Transport>& transport = tables_->group_of(node).transport;
  return transport && transport->protocol == Protocol::tcp ? &*transport : nullptr;
}

Route Topology::route(EndpointId source, EndpointId destination) const {
  Route route;
  append_route(source, destination, route.links);
  if (tables_->is_outside(source) || tables_->is_outside(destination)) {
    route.bandwidth = BytesPerSecond::infinity();
    for (const LinkId link : route.links) route.bandwidth = std::min(route.bandwidth, link_bandwidth(link));
    return route;
  }
  const TopologyTables::Place from = tables_->place(source), to = tables_->place(destination);
  route.latency = tables_->latency(from, to);
  if (from.node == to.node) {
    route.bandwidth = tables_->tables(from.node).between(from.endpoint, to.endpoint).bandwidth;
  } else {
    const TopologyTables::Crossing way = tables_->crossing(from, to);
    route.bandwidth = std::min(way.exit->bandwidth, way.entry->bandwidth);
    for (const LinkId link : route.links) {
      if (link >= tables_->first_fabric_link) route.bandwidth = std::min(route.bandwidth, link_bandwidth(link));
    }
    route.most_rate = tables_->most_rate(from, to);
  }
  if (tables_->is_server(destination)) {
    for (const LinkId link : route.links) {
      const auto times = std::ranges::count(route.links, link);
      route.bandwidth = std::min(route.bandwidth, link_bandwidth(link) / number(times));
    }
  }
  return route;
}

void Topology::append_route(EndpointId source, EndpointId destination, std::vector<LinkId>& links) const {
  if (tables_->is_outside(source) || tables_->is_outside(destination)) {
    return tables_->append_half(source, destination, links);
  }
  const TopologyTables::Place from = tables_->place(source), to = tables_->place(destination);
  if (from.node == to.node) {
    tables_->append_shifted(tables_->tables(from.node).between(from.endpoint, to.endpoint), from.node, links);
  } else {
    const TopologyTables::Crossing way = tables_->crossing(from, to);
    tables_->append_shifted(*way.exit, from.node, links);
    const auto connection = static_cast<std::uint64_t>(source) << 32U | static_cast<std::uint64_t>(destination);
    tables_->fabric->append(way.from, way.to, connection, tables_->first_fabric_link, links);
    tables_->append_shifted(*way.entry, to.node, links);
  }
  if (tables_->is_server(destination)) tables_->append_summation(to, links);
}

Seconds Topology::latency(EndpointId source, EndpointId destination) const {
  return tables_->latency(tables_->place(source), tables_->place(destination));
}

BytesPerSecond Topology::most_rate(EndpointId source, EndpointId destination) const {
  const bool inside = !tables_->is_outside(source) && !tables_->is_outside(destination);
  if (!tables_->limits_connections || !inside) return BytesPerSecond::infinity();
  return tables_->most_rate(tables_->place(source), tables_->place(destination));
}

Bytes Topology::carried_bytes(EndpointId source, EndpointId destination, Bytes message) const {
  const TopologyTables::Group& group = tables_->group_of(node_of(source));
  if (!group.transport || !(message > Bytes(0.0)) || node_of(source) == node_of(destination)) return message;
  return std::max(message, wire_bytes(message, *group.transport) * group.payload_share);
}

std::vector<int> Topology::widest_ring(std::vector<int> ranks) const {
  if (ranks.empty()) return {};
  const int node = node_of(ranks.front());
  const NodeRoutes& local = tables_->tables(node);
  std::ranges::sort(ranks);
  for (const int rank : ranks) {
    if (rank < 0 || rank >= gpus() || node_of(rank) != node) {
      throw InternalError("widest_ring: the ranks must be GPUs of one node");
    }
  }
  const auto direct_nvlink = [&](int a, int b) {
    return local.direct_nvlink(tables_->place(a).endpoint, tables_->place(b).endpoint);
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
  std::ranges::sort(ranks, {}, [&](int rank) { return local.tree_position[at_index(tables_->place(rank).endpoint)]; });
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

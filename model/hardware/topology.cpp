#include "model/hardware/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "model/hardware/node_routes.hpp"
#include "model/hardware/ring_order.hpp"

namespace foretrain {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

/// One node's tables; every node has the same, with its link ids shifted by node · links_per_node.
struct Topology::Impl {
  Gpu gpu;
  NodeRoutes local;
  int nodes = 1;
  int gpus_per_node = 1;
  int hosts_per_node = 1;
  int links_per_node = 0;
  Seconds network_latency;

  struct Place {
    int node = 0;
    int endpoint = 0;  ///< index in the local tables
  };

  [[nodiscard]] int gpus() const { return nodes * gpus_per_node; }
  [[nodiscard]] Place place(EndpointId endpoint) const {
    if (endpoint < gpus()) return {endpoint / gpus_per_node, endpoint % gpus_per_node};
    const int host = (endpoint - gpus()) % (nodes * hosts_per_node);  // a server process is where its host is
    return {host / hosts_per_node, local.gpus + host % hosts_per_node};
  }

  [[nodiscard]] bool is_server(EndpointId endpoint) const { return endpoint >= gpus() + nodes * hosts_per_node; }
  /// What adding up crosses beyond the way into host memory.
  void append_summation(Place server, std::vector<LinkId>& links) const {
    const std::size_t host = index(server.endpoint - local.gpus);
    const int shift = server.node * links_per_node;
    if (local.memory_links[host] >= 0) links.insert(links.end(), 3, shift + local.memory_links[host]);
    if (local.summation_links[host] >= 0) links.push_back(shift + local.summation_links[host]);
  }

  void append_shifted(const Route& route, int node, std::vector<LinkId>& links) const {
    for (const LinkId link : route.links) links.push_back(node * links_per_node + link);
  }

  /// Both halves of a route between nodes. Host memory near several cards uses them by turns, one for each peer.
  [[nodiscard]] std::pair<const Route*, const Route*> halves(Place from, Place to) const {
    const auto& exits = local.exits[index(from.endpoint)];
    const auto& entries = local.entries[index(to.endpoint)];
    return {&exits[index(to.node + to.endpoint) % exits.size()],
            &entries[index(from.node + from.endpoint) % entries.size()]};
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
  impl_->gpu = node.gpu;
  impl_->local = find_node_routes(node, cluster.network);
  impl_->nodes = cluster.nodes;
  impl_->gpus_per_node = cluster.gpus_per_node;
  impl_->hosts_per_node = static_cast<int>(impl_->local.host_names.size());
  impl_->links_per_node = static_cast<int>(impl_->local.links.size());
  impl_->network_latency = cluster.network.latency;
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
  return host(place.node, impl_->local.host_of_gpu[index(place.endpoint)]);
}

EndpointId Topology::host(int node, int socket) const { return gpus() + node * impl_->hosts_per_node + socket; }
int Topology::endpoints() const { return gpus() + 2 * nodes() * impl_->hosts_per_node; }
BytesPerSecond Topology::summing_traffic_rate() const { return impl_->local.summing_traffic; }

int Topology::card_of_gpu(int rank) const {
  const std::vector<int>& cards = impl_->local.cards[index(impl_->place(rank).endpoint)];
  return cards.empty() ? -1 : cards.front();
}

std::string Topology::endpoint_name(EndpointId endpoint) const {
  const Impl::Place place = impl_->place(endpoint);
  const std::string name = place.endpoint < impl_->local.gpus
                               ? fmt::format("gpu{}", place.endpoint)
                               : impl_->local.host_names[index(place.endpoint - impl_->local.gpus)];
  const std::string role = impl_->is_server(endpoint) ? " server" : "";
  return (nodes() == 1 ? name : fmt::format("node{}/{}", place.node, name)) + role;
}

int Topology::links() const { return impl_->nodes * impl_->links_per_node; }
int Topology::links_per_node() const { return impl_->links_per_node; }

DirectedLink Topology::link(LinkId id) const {
  DirectedLink link = impl_->local.links[index(id % impl_->links_per_node)];
  if (nodes() > 1) link.name = fmt::format("node{}/{}", id / impl_->links_per_node, link.name);
  return link;
}

BytesPerSecond Topology::link_bandwidth(LinkId id) const {
  return impl_->local.links[index(id % impl_->links_per_node)].bandwidth;
}

LinkKind Topology::link_kind(LinkId id) const { return impl_->local.links[index(id % impl_->links_per_node)].kind; }

bool Topology::in_network_reduction(LinkId id) const {
  return impl_->local.links[index(id % impl_->links_per_node)].in_network_reduction;
}

double Topology::collective_efficiency(LinkId id) const {
  return impl_->local.links[index(id % impl_->links_per_node)].collective_efficiency;
}

const Gpu& Topology::gpu_model() const { return impl_->gpu; }

Route Topology::route(EndpointId source, EndpointId destination) const {
  Route route;
  append_route(source, destination, route.links);
  const Impl::Place from = impl_->place(source), to = impl_->place(destination);
  if (from.node == to.node) {
    const Route& local = impl_->local.between(from.endpoint, to.endpoint);
    route.latency = local.latency;
    route.bandwidth = local.bandwidth;
  } else {
    const auto [exit, entry] = impl_->halves(from, to);
    route.latency = impl_->network_latency;
    route.bandwidth = std::min(exit->bandwidth, entry->bandwidth);
  }
  if (impl_->is_server(destination)) {
    for (const LinkId link : route.links) {
      const auto times = std::count(route.links.begin(), route.links.end(), link);
      route.bandwidth = std::min(route.bandwidth, link_bandwidth(link) / static_cast<double>(times));
    }
  }
  return route;
}

void Topology::append_route(EndpointId source, EndpointId destination, std::vector<LinkId>& links) const {
  const Impl::Place from = impl_->place(source), to = impl_->place(destination);
  if (from.node == to.node) {
    impl_->append_shifted(impl_->local.between(from.endpoint, to.endpoint), from.node, links);
  } else {
    const auto [exit, entry] = impl_->halves(from, to);
    impl_->append_shifted(*exit, from.node, links);
    impl_->append_shifted(*entry, to.node, links);
  }
  if (impl_->is_server(destination)) impl_->append_summation(to, links);
}

std::vector<int> Topology::widest_ring(const std::vector<int>& ranks, const std::vector<LinkId>& used_links) const {
  if (ranks.empty()) return {};
  const NodeRoutes& local = impl_->local;
  const int node = node_of(ranks.front());
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
        capacity[a][b] = local.links[index(link)].bandwidth;
      }
    }
    std::vector<int> ring;
    for (const int member : widest_cycle(capacity)) ring.push_back(members[index(member)]);
    if (!ring.empty()) return ring;
  }

  std::sort(members.begin(), members.end(), [&](int a, int b) {
    return local.tree_position[index(impl_->place(a).endpoint)] < local.tree_position[index(impl_->place(b).endpoint)];
  });
  std::vector<LinkId> taken;
  for (std::size_t i = 0; i < members.size(); ++i) append_route(members[i], members[(i + 1) % members.size()], taken);
  const bool free = std::none_of(taken.begin(), taken.end(), [&](LinkId link) { return used.contains(link); });
  return free ? members : std::vector<int>{};
}

}  // namespace foretrain

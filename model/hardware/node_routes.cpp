#include "model/hardware/node_routes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "model/base/error.hpp"
#include "model/hardware/wiring_graph.hpp"

namespace foretrain {
namespace {

/// Fills a NodeRoutes, step by step, from the wiring.
class Builder {
 public:
  Builder(const Node& node, const Network& network, const std::vector<Fault>& faults)
      : node_(node), network_(network), faults_(faults), wiring_(node) {}

  NodeRoutes build() {
    add_endpoints();
    add_wiring();
    add_cards();
    add_memories();
    add_network_links();
    add_summation();
    find_paths();
    find_hosts();
    find_between();
    choose_cards();
    find_exits();
    return std::move(routes_);
  }

 private:
  LinkId add_link(std::string name, LinkKind kind, BytesPerSecond bandwidth) {
    for (const Fault& fault : faults_) {
      if (fault.concerns(name)) bandwidth = fault.left_of(bandwidth);
    }
    routes_.links.push_back({std::move(name), kind, bandwidth});
    return static_cast<LinkId>(routes_.links.size()) - 1;
  }

  /// Wires both directions between two vertices; a half-duplex type gives both the same link.
  void connect(int a, int b, const std::string& name_a, const std::string& name_b, const LinkType& type, int count) {
    const BytesPerSecond bandwidth = type.bandwidth * count;
    const bool nvlink = type.kind == LinkKind::nvlink || type.kind == LinkKind::nvswitch;
    const LinkId forward = add_link(name_a + (type.full_duplex ? ">" : "-") + name_b, type.kind, bandwidth);
    const LinkId backward = type.full_duplex ? add_link(name_b + ">" + name_a, type.kind, bandwidth) : forward;
    for (const LinkId link : {forward, backward}) {
      routes_.links[at_index(link)].in_network_reduction = type.in_network_reduction;
      routes_.links[at_index(link)].collective_efficiency = type.collective_efficiency;
      if (!(type.gpu_bandwidth.value() > 0.0)) continue;
      for_gpus_[link] = add_link(routes_.links[at_index(link)].name + " for GPUs", type.kind, type.gpu_bandwidth);
    }
    add_wire(a, b, {forward, routes_.links[at_index(forward)].bandwidth, type.latency, nvlink});
    add_wire(b, a, {backward, routes_.links[at_index(backward)].bandwidth, type.latency, nvlink});
  }

  /// A failed link keeps its id, but nothing goes there.
  void add_wire(int from, int to, const Wire& wire) {
    if (!has_failed(wire.link)) wiring_.add_wire(from, to, wire);
  }
  [[nodiscard]] bool has_failed(LinkId link) const {
    return std::ranges::any_of(faults_, [&](const Fault& fault) {
      return fault.failed && fault.concerns(routes_.links[at_index(link)].name);
    });
  }

  /// The GPUs come first.
  void add_endpoints() {
    routes_.gpus = node_.gpus;
    for (int vertex = 0; vertex < static_cast<int>(node_.vertices.size()); ++vertex) {
      const auto& [name, kind] = node_.vertices[at_index(vertex)];
      if (kind == VertexKind::gpu || kind == VertexKind::cpu) endpoint_vertices_.push_back(vertex);
      if (kind == VertexKind::cpu) routes_.host_names.push_back(name);
    }
    if (node_.gpus < 1 || routes_.host_names.empty()) {
      throw ImpossiblePlan(fmt::format("{}: a node needs at least one GPU and one CPU", node_.name));
    }
  }

  void add_wiring() {
    for (const NodeLink& link : node_.links) {
      connect(link.a, link.b, node_.vertices[at_index(link.a)].name, node_.vertices[at_index(link.b)].name,
              node_.link_types[at_index(link.type)], link.count);
    }
  }

  /// Cards hang on the stated vertices, or evenly on the sockets where nothing is stated.
  void add_cards() {
    std::vector<int> places = node_.nic_attachment;
    if (places.empty()) places.assign(endpoint_vertices_.begin() + node_.gpus, endpoint_vertices_.end());
    const bool slot_described = node_.nic_attachment_link.bandwidth.value() > 0.0;
    for (int card = 0; card < network_.nics_per_node; ++card) {
      const int place = places[at_index(card) * places.size() / at_index(network_.nics_per_node)];
      const int vertex = wiring_.add_vertex(false);
      card_vertices_.push_back(vertex);
      if (slot_described) {
        connect(place, vertex, node_.vertices[at_index(place)].name, fmt::format("nic{}", card),
                node_.nic_attachment_link, 1);
      } else {
        const Wire slot{-1, BytesPerSecond::infinity(), Seconds(0), false};
        wiring_.add_wire(place, vertex, slot);
        wiring_.add_wire(vertex, place, slot);
      }
    }
  }

  /// Reading and writing share a socket's memory bandwidth; data staged through it is written and read: it counts
  /// twice.
  void add_memories() {
    const BytesPerSecond bandwidth = node_.cpu.memory_bandwidth / number(routes_.host_names.size());
    for (const std::string& host : routes_.host_names) {
      routes_.memory_links.push_back(bandwidth.value() > 0.0 ? add_link(host + " memory", LinkKind::memory, bandwidth)
                                                             : -1);
    }
  }

  /// One core keeps as many cache lines on their way from memory as it has line-fill buffers: 10 · 64 bytes in about
  /// 80 ns are 8 GB/s (Little's law; buffers: Intel 64 and IA-32 Architectures Optimization Reference Manual).
  void add_summation() {
    constexpr BytesPerSecond per_core = 8.0_GBps;
    const auto sockets = number(routes_.host_names.size());
    const BytesPerSecond cores = per_core * (node_.cpu.cores / sockets);
    const BytesPerSecond memory = node_.cpu.memory_bandwidth / sockets;
    const bool cores_bind = !(memory.value() > 0.0) || cores < memory;
    routes_.summing_traffic = cores_bind ? cores : memory;
    for (const std::string& host : routes_.host_names) {
      // A gradient's byte causes three of traffic: its own reading, the sum's reading and writing.
      routes_.summation_links.push_back(cores_bind ? add_link(host + " summation", LinkKind::memory, cores / 3.0) : -1);
    }
  }

  void add_network_links() {
    const BytesPerSecond card = network_.nic_bandwidth * network_.efficiency;
    for (int i = 0; i < network_.nics_per_node; ++i) {
      card_up_.push_back(add_link(fmt::format("nic{}>fabric", i), LinkKind::network, card));
      card_down_.push_back(add_link(fmt::format("fabric>nic{}", i), LinkKind::network, card));
    }
    if (network_.nics_per_node > 0 && network_.oversubscription > 1.0) {
      const BytesPerSecond node = card * network_.nics_per_node / network_.oversubscription;
      node_up_ = add_link("node>fabric", LinkKind::network, node);
      node_down_ = add_link("fabric>node", LinkKind::network, node);
    }
    for (DirectedLink& link : routes_.links) {
      if (link.kind == LinkKind::network) link.in_network_reduction = network_.in_network_reduction;
    }
  }

  /// A link can fail in one direction only.
  void find_paths() {
    paths_.resize(at_index(wiring_.vertices()));
    for (const std::vector<int>& vertices : {endpoint_vertices_, card_vertices_}) {
      for (const int vertex : vertices) {
        paths_[at_index(vertex)] = wiring_.paths_from(vertex, WiringGraph::Through::anything);
      }
    }
    for (const int from : endpoint_vertices_) {
      std::vector<std::string> lost;
      for (int to = 0; to < static_cast<int>(node_.vertices.size()); ++to) {
        const auto& [name, kind] = node_.vertices[at_index(to)];
        const bool needed = from == endpoint_vertices_[0] || kind == VertexKind::gpu || kind == VertexKind::cpu;
        if (needed && !leads(from, to)) lost.push_back(name);
      }
      if (lost.empty()) continue;
      throw ImpossiblePlan(fmt::format("{}: no link leads from {} to {}", node_.name,
                                       node_.vertices[at_index(from)].name, fmt::join(lost, ", ")));
    }
  }

  [[nodiscard]] bool leads(int from_vertex, int to_vertex) const {
    return paths_[at_index(from_vertex)][at_index(to_vertex)].has_value();
  }
  [[nodiscard]] const Path& path(int from_vertex, int to_vertex) const {
    return *paths_[at_index(from_vertex)][at_index(to_vertex)];
  }
  [[nodiscard]] int host_vertex(int host) const { return endpoint_vertices_[at_index(node_.gpus + host)]; }

  void find_hosts() {
    std::vector<std::vector<int>> way_from_host;
    for (int gpu = 0; gpu < node_.gpus; ++gpu) {
      int nearest = 0;
      for (int host = 1; host < static_cast<int>(routes_.host_names.size()); ++host) {
        if (path(gpu, host_vertex(host)).cost < path(gpu, host_vertex(nearest)).cost) nearest = host;
      }
      routes_.host_of_gpu.push_back(nearest);
      way_from_host.push_back(path(host_vertex(nearest), gpu).vertices);
    }
    // Sorting GPUs by their way down from the socket keeps those together that share a socket, then a switch.
    std::vector<int> order(at_index(node_.gpus));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return way_from_host[at_index(a)] < way_from_host[at_index(b)]; });
    routes_.tree_position.resize(order.size());
    for (int position = 0; position < node_.gpus; ++position) {
      routes_.tree_position[at_index(order[at_index(position)])] = position;
    }
  }

  /// The narrowest link sets the bandwidth; one that is listed twice gives half.
  [[nodiscard]] Route make_route(std::vector<LinkId> links, Seconds latency) const {
    Route route{std::move(links), latency, BytesPerSecond::infinity()};
    for (const LinkId link : route.links) {
      const auto times = std::ranges::count(route.links, link);
      route.bandwidth = std::min(route.bandwidth, routes_.links[at_index(link)].bandwidth / number(times));
    }
    return route;
  }

  /// From GPU or host memory to GPU or host memory, CPU memory included where the data starts or ends there.
  [[nodiscard]] Route memory_to_memory(int from, int to) const {
    const Path& way = path(endpoint_vertices_[at_index(from)], endpoint_vertices_[at_index(to)]);
    std::vector<LinkId> links = way.links;
    const auto memory_of = [this](int endpoint) {
      return endpoint < node_.gpus ? -1 : routes_.memory_links[at_index(endpoint - node_.gpus)];
    };
    if (memory_of(from) >= 0) links.insert(links.begin(), memory_of(from));
    if (memory_of(to) >= 0) links.push_back(memory_of(to));
    return make_route(std::move(links), way.latency);
  }

  [[nodiscard]] Route join(const Route& first, const Route& second) const {
    std::vector<LinkId> links = first.links;
    links.insert(links.end(), second.links.begin(), second.links.end());
    return make_route(std::move(links), first.latency + second.latency);
  }

  /// Without peer access, the sender writes to the memory near the receiver, which reads it there (NCCL_SHM_LOCALITY is
  /// the receiver's; src/transport/shm.cc).
  [[nodiscard]] Route staged(int from, int to) const {
    const int host = node_.gpus + routes_.host_of_gpu[at_index(to)];
    return join(memory_to_memory(from, host), memory_to_memory(host, to));
  }

  /// Between GPUs that no NVLink joins.
  [[nodiscard]] Route over_pcie(int from, int to) const {
    const std::vector<int>& way = path(endpoint_vertices_[at_index(from)], endpoint_vertices_[at_index(to)]).vertices;
    const bool past_processor = std::ranges::any_of(
        way, [this](int vertex) { return node_.vertices[at_index(vertex)].kind == VertexKind::cpu; });
    const bool by_default = node_.gpu.processor || (node_.gpu.peer_access && !past_processor);
    const Route route = node_.peer_to_peer.value_or(by_default) ? memory_to_memory(from, to) : staged(from, to);
    std::vector<LinkId> links = route.links;
    for (const LinkId link : route.links) {
      if (const auto limit = for_gpus_.find(link); limit != for_gpus_.end()) links.push_back(limit->second);
    }
    return make_route(std::move(links), route.latency);
  }

  void find_between() {
    const int endpoints = routes_.endpoints();
    routes_.direct_nvlinks.assign(at_index(node_.gpus) * at_index(node_.gpus), -1);
    for (int from = 0; from < endpoints; ++from) {
      const auto over_nvlink =
          wiring_.paths_from(endpoint_vertices_[at_index(from)], WiringGraph::Through::nvlink_only);
      for (int to = 0; to < endpoints; ++to) {
        const bool between_gpus = from < node_.gpus && to < node_.gpus;
        if (from == to) {
          routes_.between_endpoints.push_back(make_route({}, Seconds(0)));
        } else if (between_gpus && over_nvlink[at_index(to)]) {
          const Path& way = *over_nvlink[at_index(to)];
          if (way.cost.hops == 1) routes_.direct_nvlinks[at_index(from * node_.gpus + to)] = way.links.front();
          routes_.between_endpoints.push_back(make_route(way.links, way.latency));
        } else if (between_gpus) {
          routes_.between_endpoints.push_back(over_pcie(from, to));
        } else {
          routes_.between_endpoints.push_back(memory_to_memory(from, to));
        }
      }
    }
  }

  [[nodiscard]] bool works(int card) const {
    return !has_failed(card_up_[at_index(card)]) && !has_failed(card_down_[at_index(card)]);
  }

  /// The memory from which and into which cards carry an endpoint's data: a host's where they cannot reach the GPU's.
  [[nodiscard]] int memory_for_cards(int endpoint) const {
    const bool gpu_staged = endpoint < node_.gpus && !network_.gpu_direct;
    return gpu_staged ? node_.gpus + routes_.host_of_gpu[at_index(endpoint)] : endpoint;
  }

  /// The nearest cards of every endpoint; GPUs that have the same nearest cards are spread evenly over them by index.
  void choose_cards() {
    routes_.cards.resize(at_index(routes_.endpoints()));
    if (card_vertices_.empty()) return;
    for (int endpoint = 0; endpoint < routes_.endpoints(); ++endpoint) {
      constexpr int none = std::numeric_limits<int>::max();
      const int memory = endpoint_vertices_[at_index(memory_for_cards(endpoint))];
      const auto hops = [&](int card) {
        const int there = card_vertices_[at_index(card)], here = endpoint_vertices_[at_index(endpoint)];
        const bool usable = works(card) && leads(here, there) && leads(memory, there) && leads(there, memory);
        return usable ? path(here, there).cost.hops : none;
      };
      int least = none;
      for (int card = 0; card < network_.nics_per_node; ++card) least = std::min(least, hops(card));
      for (int card = 0; card < network_.nics_per_node && least < none; ++card) {
        if (hops(card) == least) routes_.cards[at_index(endpoint)].push_back(card);
      }
    }
    const std::vector<std::vector<int>> nearest(routes_.cards.begin(), routes_.cards.begin() + node_.gpus);
    for (int gpu = 0; gpu < node_.gpus; ++gpu) {
      const std::vector<int>& mine = nearest[at_index(gpu)];
      if (mine.empty()) continue;  // no card is left
      const auto sharing = static_cast<std::size_t>(std::ranges::count(nearest, mine));
      const auto before = static_cast<std::size_t>(std::count(nearest.begin(), nearest.begin() + gpu, mine));
      routes_.cards[at_index(gpu)] = {mine[before * mine.size() / sharing]};
    }
  }

  /// Between an endpoint's memory and one card; through host memory where the card cannot reach the GPU's.
  [[nodiscard]] Route to_card(int endpoint, int card, bool outward) const {
    const int memory = memory_for_cards(endpoint);
    const int memory_vertex = endpoint_vertices_[at_index(memory)];
    const int card_vertex = card_vertices_[at_index(card)];
    std::vector<LinkId> links =
        outward ? path(memory_vertex, card_vertex).links : path(card_vertex, memory_vertex).links;
    if (memory >= node_.gpus) {
      const LinkId memory_link = routes_.memory_links[at_index(memory - node_.gpus)];
      if (memory_link >= 0) links.insert(outward ? links.begin() : links.end(), memory_link);
    }
    Route card_route = make_route(std::move(links), Seconds(0));
    if (memory == endpoint) return card_route;
    return outward ? join(memory_to_memory(endpoint, memory), card_route)
                   : join(card_route, memory_to_memory(memory, endpoint));
  }

  void find_exits() {
    for (int endpoint = 0; endpoint < routes_.endpoints(); ++endpoint) {
      std::vector<Route> out, in;
      for (const int card : routes_.cards[at_index(endpoint)]) {
        std::vector<LinkId> up = {card_up_[at_index(card)]}, down = {card_down_[at_index(card)]};
        if (node_up_ >= 0) up.push_back(node_up_);
        if (node_down_ >= 0) down.insert(down.begin(), node_down_);
        out.push_back(join(to_card(endpoint, card, true), make_route(up, Seconds(0))));
        in.push_back(join(make_route(down, Seconds(0)), to_card(endpoint, card, false)));
        out.back().latency = in.back().latency = Seconds(0);
      }
      routes_.exits.push_back(std::move(out));
      routes_.entries.push_back(std::move(in));
    }
  }

  const Node& node_;
  const Network& network_;
  const std::vector<Fault>& faults_;
  WiringGraph wiring_;
  NodeRoutes routes_;
  std::vector<int> endpoint_vertices_;  // GPUs, then CPUs
  std::vector<int> card_vertices_;
  std::vector<LinkId> card_up_, card_down_;
  std::map<LinkId, LinkId> for_gpus_;  // of a link between processors what limits their GPUs
  LinkId node_up_ = -1, node_down_ = -1;
  std::vector<std::vector<std::optional<Path>>> paths_;  // by source vertex: endpoints and cards only
};

}  // namespace

NodeRoutes find_node_routes(const Node& node, const Network& network, const std::vector<Fault>& faults) {
  return Builder(node, network, faults).build();
}

std::vector<Fault> faults_of_node(const Cluster& cluster, int node) {
  std::vector<Fault> faults;
  for (const Fault& fault : cluster.faults) {
    if (fault.node != node || fault.gpu >= 0) continue;
    faults.push_back(fault);
    const bool to_fabric = fault.card >= 0 || fault.link.find("fabric") != std::string::npos;
    if (to_fabric) faults.back().bandwidth *= cluster.network_at(node).efficiency;  // stated as a line rate
  }
  return faults;
}

}  // namespace foretrain

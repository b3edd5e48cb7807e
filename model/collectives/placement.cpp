#include "model/collectives/placement.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "model/base/error.hpp"
#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

std::vector<EndpointId> host_servers(int servers, const std::vector<std::vector<int>>& ranks_by_node,
                                     const Topology& topology) {
  const int nodes = static_cast<int>(ranks_by_node.size());
  const int sockets = topology.hosts_per_node();
  std::vector<EndpointId> endpoints;
  endpoints.reserve(static_cast<std::size_t>(servers));
  for (int server = 0; server < servers; ++server) {
    const int first_gpu = ranks_by_node[server % nodes].front();
    const int node = topology.node_of(first_gpu);
    const int nearest = topology.host_of_gpu(first_gpu) - topology.host(node, 0);
    endpoints.push_back(topology.server_on(topology.host(node, (nearest + server / nodes) % sockets)));
  }
  return endpoints;
}

std::vector<EndpointId> gpu_servers(int servers, const std::vector<int>& group) {
  const int ranks = static_cast<int>(group.size());
  std::vector<EndpointId> endpoints;
  endpoints.reserve(static_cast<std::size_t>(servers));
  for (int server = 0; server < servers; ++server) {
    endpoints.push_back(group[servers <= ranks ? server * ranks / servers : server % ranks]);
  }
  return endpoints;
}

std::vector<EndpointId> dedicated_servers(const CollectiveCall& call, const Topology& topology) {
  std::set<int> busy;
  for (const std::vector<int>& group : call.groups) {
    for (const int rank : group) busy.insert(topology.node_of(rank));
  }
  std::vector<EndpointId> hosts;
  for (int socket = 0; socket < topology.hosts_per_node(); ++socket) {
    for (int node = 0; node < topology.nodes(); ++node) {
      if (!busy.contains(node)) hosts.push_back(topology.server_on(topology.host(node, socket)));
    }
  }
  if (hosts.empty()) {
    throw ImpossiblePlan(
        "dedicated parameter servers need nodes without workers: every node has ranks; add nodes to the cluster, or "
        "place the servers on cpu, gpu or colocated");
  }
  const int free_nodes = topology.nodes() - static_cast<int>(busy.size());
  if (call.servers > free_nodes) {
    throw ImpossiblePlan(
        fmt::format("{} dedicated parameter servers on {} nodes without workers: a server has a node of its own; use "
                    "{} servers or more nodes",
                    call.servers, free_nodes, free_nodes));
  }
  std::vector<EndpointId> endpoints;
  endpoints.reserve(static_cast<std::size_t>(call.servers));
  for (int server = 0; server < call.servers; ++server) endpoints.push_back(hosts[server % hosts.size()]);
  return endpoints;
}

}  // namespace

std::vector<std::vector<int>> split_by_node(const std::vector<int>& group, const Topology& topology) {
  std::vector<std::vector<int>> result;
  std::map<int, std::size_t> position;
  for (const int rank : group) {
    const auto [found, is_new] = position.try_emplace(topology.node_of(rank), result.size());
    if (is_new) result.emplace_back();
    result[found->second].push_back(rank);
  }
  return result;
}

std::vector<int> RingOrders::order(const std::vector<int>& group) {
  std::vector<int> result;
  result.reserve(group.size());
  for (const std::vector<int>& ranks : split_by_node(group, topology_)) {
    if (ranks.size() == 1) {
      result.push_back(ranks.front());
      continue;
    }
    const int node = topology_.node_of(ranks.front());
    const int base = topology_.first_gpu(node);
    std::vector<int> locals = ranks;
    for (int& local : locals) local -= base;
    const std::pair pattern(topology_.kind_of_node(node), locals);
    auto known = known_.find(pattern);
    if (known == known_.end()) {
      std::vector<int> ring = topology_.widest_ring(ranks);
      for (int& rank : ring) rank -= base;
      known = known_.emplace(pattern, std::move(ring)).first;
    }
    for (const int local : known->second) result.push_back(base + local);
  }
  return result;
}

std::vector<EndpointId> server_endpoints(const CollectiveCall& call, const std::vector<int>& group,
                                         const Topology& topology) {
  switch (call.placement) {
    case ServerPlacement::cpu:
      return host_servers(call.servers, split_by_node(group, topology), topology);
    case ServerPlacement::gpu:
    case ServerPlacement::colocated:
      return gpu_servers(call.servers, group);
    case ServerPlacement::dedicated:
      return dedicated_servers(call, topology);
  }
  return {};
}

std::vector<std::vector<EndpointId>> place_participants(const CollectiveCall& call, const Topology& topology) {
  const Algorithm& algorithm = algorithm_of(call.algorithm);
  RingOrders orders(topology);
  std::vector<std::vector<EndpointId>> placed;
  for (const std::vector<int>& group : call.groups) {
    placed.push_back(algorithm.order != nullptr ? algorithm.order(call, group, orders) : group);
    if (algorithm.has_servers && call.servers >= 1) {
      const std::vector<EndpointId> servers = server_endpoints(call, group, topology);
      placed.back().insert(placed.back().end(), servers.begin(), servers.end());
    }
  }
  return placed;
}

}  // namespace foretrain

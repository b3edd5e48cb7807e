// What schedules must know of the hardware: group sizes, rings, switches that reduce.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "model/collectives/placement.hpp"
#include "model/collectives/ring_paths.hpp"

namespace foretrain {

namespace {

/// "node 0 has 8, node 1 has 4": the first node of every different number.
std::string describe(const std::vector<std::vector<int>>& nodes, const Topology& topology) {
  std::map<std::size_t, int> first_with;
  for (const std::vector<int>& ranks : nodes) first_with.try_emplace(ranks.size(), topology.node_of(ranks.front()));
  std::string text;
  for (auto entry = first_with.rbegin(); entry != first_with.rend(); ++entry) {
    text += fmt::format("{}node {} has {}", text.empty() ? "" : ", ", entry->second, entry->first);
  }
  return text;
}

int equal_ranks_per_node(const CollectiveCall& call, const std::vector<int>& group, const Topology& topology) {
  const std::vector<std::vector<int>> nodes = split_by_node(group, topology);
  const bool equal = std::all_of(nodes.begin(), nodes.end(),
                                 [&](const std::vector<int>& ranks) { return ranks.size() == nodes.front().size(); });
  if (!equal) {
    throw std::invalid_argument(fmt::format(
        "{} needs the same number of ranks on every node, but {}; use whole nodes, or hierarchical_leader, which takes "
        "groups of any size",
        find_algorithm(call.algorithm, call.operation)->name, describe(nodes, topology)));
  }
  return static_cast<int>(nodes.front().size());
}

std::vector<int> levels_of(const CollectiveCall& call, const std::vector<int>& group, const Topology& topology) {
  const int per_node = equal_ranks_per_node(call, group, topology);
  if (call.levels.empty()) return {per_node};
  std::int64_t together = 1;
  for (const int level : call.levels) {
    together *= level;
    if (per_node % together != 0 && together % per_node != 0) {
      throw std::invalid_argument(
          fmt::format("levels {}: groups of {} ranks cut through nodes of {}; sizes must multiply to a divisor or a "
                      "multiple of the ranks of a node, for example [{}]",
                      fmt::join(call.levels, " x "), together, per_node, per_node));
    }
    if (together > static_cast<std::int64_t>(group.size()) || static_cast<std::int64_t>(group.size()) % together != 0) {
      throw std::invalid_argument(fmt::format(
          "levels {}: {} ranks cannot be cut into groups of {}; the product of the levels must divide the ranks",
          fmt::join(call.levels, " x "), group.size(), together));
    }
  }
  return call.levels;
}

bool all_reduce_in_switch(EndpointId source, EndpointId destination, const Topology& topology, bool network) {
  const Route route = topology.route(source, destination);
  const auto reduces = [&](LinkId link) {
    const bool counts = !network || topology.link_kind(link) == LinkKind::network;
    return !counts || topology.in_network_reduction(link);
  };
  return route.links.size() > 1 && std::all_of(route.links.begin(), route.links.end(), reduces);
}

ScheduleShape in_network_shape(const CollectiveCall& call, const std::vector<int>& group, const Topology& topology) {
  ScheduleShape shape(equal_ranks_per_node(call, group, topology));
  const std::vector<std::vector<int>> nodes = split_by_node(group, topology);
  const std::vector<int>& first = nodes.front();
  shape.switches_inside = first.size() > 1 && all_reduce_in_switch(first[0], first[1], topology, false);
  if (nodes.size() == 1 && first.size() > 1 && !shape.switches_inside) {
    throw std::invalid_argument(
        "in_network needs switches that add up: NVLink SHARP, on NVSwitches of the H100's generation and later "
        "(in_network_reduction: true in a link type); use ring or multi_ring here");
  }
  if (nodes.size() > 1 && !all_reduce_in_switch(first[0], nodes[1][0], topology, true)) {
    throw std::invalid_argument(
        "in_network between nodes needs switches that add up (InfiniBand SHARP); network: { in_network_reduction: true "
        "} "
        "if the fabric has them, or use hierarchical");
  }
  return shape;
}

std::vector<int> concatenate(const std::vector<std::vector<int>>& parts) {
  std::vector<int> all;
  for (const std::vector<int>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Node by node; groups of the innermost level are neighbours, and in ring order.
std::vector<int> level_order(const std::vector<int>& group, int innermost, RingOrders& orders,
                             const Topology& topology) {
  std::vector<int> result;
  for (std::vector<int>& ranks : split_by_node(group, topology)) {
    std::sort(ranks.begin(), ranks.end());
    const int size = std::min(innermost, static_cast<int>(ranks.size()));
    for (std::size_t first = 0; first < ranks.size(); first += static_cast<std::size_t>(size)) {
      const std::size_t end = std::min(ranks.size(), first + static_cast<std::size_t>(size));
      const std::vector<int> inner = orders.order({ranks.begin() + first, ranks.begin() + end});
      result.insert(result.end(), inner.begin(), inner.end());
    }
  }
  return result;
}

std::vector<int> schedule_order(const CollectiveCall& call, const std::vector<int>& group, RingOrders& orders,
                                const Topology& topology) {
  using enum SyncAlgorithm;
  // Who sends to whom is part of a send-receive's meaning.
  if (call.operation == CollectiveOperation::send_receive) return group;
  if (call.operation == CollectiveOperation::all_to_all) {
    return call.algorithm == hierarchical ? concatenate(split_by_node(group, topology)) : group;
  }
  switch (call.algorithm) {
    case ring:
    case bidirectional_ring:
    case hierarchical_leader:
    case hierarchical_parameter_server:
    case in_network:
      return orders.order(group);
    case hierarchical:
      return call.levels.empty() ? orders.order(group) : level_order(group, call.levels.front(), orders, topology);
    default:
      return group;
  }
}

}  // namespace

std::vector<std::vector<EndpointId>> place_participants(const CollectiveCall& call, const Topology& topology) {
  RingOrders orders(topology);
  std::vector<std::vector<EndpointId>> placed;
  for (const std::vector<int>& group : call.groups) {
    placed.push_back(schedule_order(call, group, orders, topology));
    if (has_servers(call.algorithm) && call.servers >= 1) {
      const std::vector<EndpointId> servers = server_endpoints(call, group, topology);
      placed.back().insert(placed.back().end(), servers.begin(), servers.end());
    }
  }
  return placed;
}

ScheduleShape shape_of(const CollectiveCall& call, const std::vector<int>& group, const Topology& topology) {
  ScheduleShape shape(1);
  switch (call.algorithm) {
    case SyncAlgorithm::parameter_server:
      shape.parts = call.servers;
      break;
    case SyncAlgorithm::hierarchical_parameter_server:
      shape.parts = call.servers;
      shape.ranks_per_node = equal_ranks_per_node(call, group, topology);
      break;
    case SyncAlgorithm::hierarchical:
      shape.levels = levels_of(call, group, topology);
      break;
    case SyncAlgorithm::hierarchical_leader:
      for (const std::vector<int>& ranks : split_by_node(group, topology)) {
        shape.groups.push_back(static_cast<int>(ranks.size()));
      }
      break;
    case SyncAlgorithm::multi_ring:
      shape.rings = multi_rings(group, topology);
      break;
    case SyncAlgorithm::in_network:
      return in_network_shape(call, group, topology);
    default:
      break;
  }
  return shape;
}

}  // namespace foretrain

#include "model/collectives/algorithm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

namespace foretrain {

namespace {

/// "node 0 has 8, node 1 has 4": the first node of every different number.
std::string describe(const std::vector<std::vector<int>>& nodes, const Topology& topology) {
  std::map<std::size_t, int, std::greater<>> first_with;  // the fullest nodes first
  for (const std::vector<int>& ranks : nodes) first_with.try_emplace(ranks.size(), topology.node_of(ranks.front()));
  std::string text;
  for (const auto& [ranks, node] : first_with) {
    text += fmt::format("{}node {} has {}", text.empty() ? "" : ", ", node, ranks);
  }
  return text;
}

}  // namespace

bool Algorithm::has(CollectiveOperation operation) const {
  return std::ranges::find(operations, operation) != operations.end();
}

Schedule Algorithm::schedule(CollectiveOperation operation, int ranks, const ScheduleShape& shape) const {
  return ranks == 1 && !has_servers ? joined(1, 1, {}) : build(operation, ranks, shape);
}

const Algorithm& algorithm_of(SyncAlgorithm algorithm) {
  static const Algorithm automatic;
  static const std::array all = {
      &automatic,
#define ALGORITHM(name) &name##_algorithm,
#include "model/base/error.hpp"
#include "model/collectives/algorithms.def"
  };
  return *all[static_cast<std::size_t>(algorithm)];
}

bool has_servers(SyncAlgorithm algorithm) { return algorithm_of(algorithm).has_servers; }

std::vector<std::string> algorithms_for(CollectiveOperation operation) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < names_of<SyncAlgorithm>.size(); ++i) {
    const auto algorithm = static_cast<SyncAlgorithm>(i);
    if (algorithm_of(algorithm).has(operation)) words.emplace_back(name(algorithm));
  }
  return words;
}

std::vector<int> ring_order(const CollectiveCall& call, const std::vector<int>& group, RingOrders& orders) {
  return is_exchange(call.operation) ? group : orders.order(group);
}

int equal_ranks_per_node(const CollectiveCall& call, const std::vector<int>& group, const Topology& topology) {
  const std::vector<std::vector<int>> nodes = split_by_node(group, topology);
  const bool equal = std::all_of(nodes.begin(), nodes.end(),
                                 [&](const std::vector<int>& ranks) { return ranks.size() == nodes.front().size(); });
  if (!equal) {
    throw ImpossiblePlan(fmt::format(
        "{} needs the same number of ranks on every node, but {}; use whole nodes, or ring, which takes any",
        name(call.algorithm), describe(nodes, topology)));
  }
  return static_cast<int>(nodes.front().size());
}

}  // namespace foretrain

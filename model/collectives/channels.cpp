#include "model/collectives/channels.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "model/collectives/traffic.hpp"

namespace foretrain {

namespace {

constexpr double on_nvlink = 24.0, between_nodes_at_most = 16.0;
constexpr NcclVersion more_channels_since{2, 18};

/// Whether NVLinks lead from each rank to all others, by way of other ranks at most: bridged pairs on PCIe are apart.
bool over_nvlink(const std::vector<int>& group, const Topology& topology) {
  const auto joined = [&](int from, int to) {
    return std::ranges::all_of(topology.route(from, to).links,
                               [&](LinkId link) { return is_nvlink(topology.link_kind(link)); });
  };
  std::vector<int> reached = {group.front()};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const int to : group) {
      if (std::ranges::find(reached, to) == reached.end() && joined(reached[i], to)) reached.push_back(to);
    }
  }
  return reached.size() == group.size();
}

}  // namespace

double channels_of(const std::vector<int>& group, const Topology& topology) {
  std::map<int, std::set<int>> cards_of_node;
  int elsewhere = group.front();
  for (const int rank : group) {
    const int node = topology.node_of(rank);
    cards_of_node[node].insert(topology.card_of_gpu(rank));
    if (node != topology.node_of(group.front())) elsewhere = rank;
  }
  if (cards_of_node.size() == 1) return over_nvlink(group, topology) ? on_nvlink : 2.0;
  std::size_t cards = 1;
  for (const auto& [node, used] : cards_of_node) cards = std::max(cards, used.size());
  const bool twice = topology.nccl() >= more_channels_since &&
                     topology.gpu_model(topology.node_of(group.front())).compute_capability >= 9.0 &&
                     topology.route(group.front(), elsewhere).bandwidth >= BytesPerSecond(25e9);
  return std::min((twice ? 4.0 : 2.0) * static_cast<double>(cards), between_nodes_at_most);
}

double channel_share(const std::vector<int>& group, const Topology& topology) {
  return channels_of(group, topology) / on_nvlink;
}

}  // namespace foretrain

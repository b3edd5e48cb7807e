#include "model/hardware/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <variant>

namespace foretrain {

namespace {

constexpr double noticed = 0.99;

double gigabits(BytesPerSecond bandwidth) { return bandwidth.value() * 8e-9; }

/// The narrowest link inside the node on a GPU's way to another node, and the card behind it.
struct WayOut {
  LinkId narrowest = -1;
  BytesPerSecond slot = BytesPerSecond::infinity(), card;
};

WayOut way_out(int rank, int other, const Topology& topology) {
  WayOut way;
  for (const LinkId link : topology.route(rank, other).links) {
    const BytesPerSecond bandwidth = topology.link_bandwidth(link);
    if (topology.link_kind(link) == LinkKind::network) {
      way.card = bandwidth;
      break;
    }
    if (bandwidth < way.slot) way = {link, bandwidth, {}};
  }
  return way;
}

void add_limits(int node, const std::string& name, const Network& network, const Topology& topology,
                std::vector<std::string>& limits) {
  const int first = topology.first_gpu(node), other = topology.first_gpu(node == 0 ? 1 : 0);
  std::set<int> cards;
  bool narrow = false, slow = false;
  for (int rank = first; rank < topology.gpus() && topology.node_of(rank) == node; ++rank) {
    cards.insert(topology.card_of_gpu(rank));
    const auto [narrowest, slot, card] = way_out(rank, other, topology);
    if (!narrow && slot < card * noticed) {
      narrow = true;
      limits.push_back(
          fmt::format("{}: link {} carries {:.0f} Gbit/s and limits a NIC of {:.0f} Gbit/s to {:.0f} Gbit/s", name,
                      topology.link(narrowest).name, gigabits(slot), gigabits(network.nic_bandwidth),
                      gigabits(network.nic_bandwidth) * (slot / card)));
    }
    const BytesPerSecond most = topology.most_rate(rank, other);
    if (!slow && most < std::min(slot, card) * noticed) {
      slow = true;
      limits.push_back(
          fmt::format("{}: one flow to another node reaches {:.3g} of the NIC's {:.3g} Gbit/s "
                      "(cluster.network.transport: window, loss, flow_limit, streams)",
                      name, gigabits(most), gigabits(card)));
    }
  }
  if (static_cast<int>(cards.size()) < network.nics_per_node) {
    limits.push_back(fmt::format("{}: {} of its {} NICs are nearest to no GPU in use, and stay idle", name,
                                 network.nics_per_node - static_cast<int>(cards.size()), network.nics_per_node));
  }
}

/// Hashed routes and congestion cost such networks what a single switch would carry.
void add_assumed_fabric(int nodes, const Network& network, std::vector<std::string>& limits) {
  constexpr int few = 2;
  const bool roce = network.transport && network.transport->protocol == Protocol::roce;
  if (!roce || nodes <= few || !network.scaling.empty() ||
      !std::holds_alternative<SingleSwitch>(network.fabric.shape)) {
    return;
  }
  limits.push_back(
      fmt::format("fabric: one switch that never blocks is assumed, and {} nodes over RoCE often reach less; "
                  "state network.scaling as measured, or network.fabric",
                  nodes));
}

}  // namespace

std::vector<std::string> network_limits(const Cluster& cluster, const Topology& topology) {
  std::vector<std::string> limits;
  if (topology.nodes() < 2) return limits;
  add_assumed_fabric(topology.nodes(), cluster.network, limits);
  int node = 0;
  for (const NodeKind& kind : cluster.kinds()) {
    add_limits(node, kind.node.name, kind.network, topology, limits);
    node += kind.nodes;
  }
  return limits;
}

}  // namespace foretrain

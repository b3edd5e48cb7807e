#include "model/collectives/network_effects.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace foretrain {

namespace {

/// Latencies along one cycle of hops.
using Cycle = std::vector<Seconds>;

/// Whether some hops between nodes take longer than others.
bool is_uneven(const std::vector<Flow>& flows, const Topology& topology) {
  Seconds least = Seconds::infinity(), most(0.0);
  for (const Flow& flow : flows) {
    if (topology.node_of(flow.source) == topology.node_of(flow.destination)) continue;
    const Seconds latency = topology.latency(flow.source, flow.destination);
    least = std::min(least, latency);
    most = std::max(most, latency);
  }
  return least < most;
}

/// The cycles in which every flow's destination is the source of the next; none when the flows do not form such.
std::vector<Cycle> cycles_of(const std::vector<Flow>& flows, const Topology& topology) {
  std::unordered_map<EndpointId, std::size_t> flow_from;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    if (!flow_from.emplace(flows[i].source, i).second) return {};
  }
  std::vector<bool> seen(flows.size());
  std::vector<Cycle> cycles;
  for (std::size_t first = 0; first < flows.size(); ++first) {
    if (seen[first]) continue;
    Cycle& cycle = cycles.emplace_back();
    for (std::size_t at = first;;) {
      seen[at] = true;
      cycle.push_back(topology.latency(flows[at].source, flows[at].destination));
      const auto next = flow_from.find(flows[at].destination);
      if (next == flow_from.end()) return {};
      if (next->second == first) break;
      if (seen[next->second]) return {};  // two flows to one destination
      at = next->second;
    }
  }
  return cycles;
}

}  // namespace

Seconds longest_way(const std::vector<Seconds>& cycle, int hops) {
  const auto length = static_cast<int>(cycle.size());
  Seconds lap(0.0);
  for (const Seconds hop : cycle) lap += hop;
  const int rest = hops % length;
  Seconds way(0.0);
  for (int i = 0; i < rest; ++i) way += cycle[static_cast<std::size_t>(i)];
  Seconds longest = way;
  for (int i = 0; i < length; ++i) {
    way += cycle[static_cast<std::size_t>((i + rest) % length)] - cycle[static_cast<std::size_t>(i)];
    longest = std::max(longest, way);
  }
  const int laps = hops / length;
  return lap * static_cast<double>(laps) + longest;
}

void add_headers(LoweredCollective::Phase& phase, const Topology& topology) {
  for (Flow& flow : phase.flows) flow.bytes = topology.carried_bytes(flow.source, flow.destination, flow.bytes);
}

void average_ring_latency(LoweredCollective::Phase& phase, const Topology& topology) {
  if (phase.repeat < 2 || !is_uneven(phase.flows, topology)) return;
  Seconds mean(0.0);
  for (const Cycle& cycle : cycles_of(phase.flows, topology)) {
    mean = std::max(mean, longest_way(cycle, phase.repeat) / static_cast<double>(phase.repeat));
  }
  if (mean > Seconds(0.0)) phase.latency = mean;
}

}  // namespace foretrain

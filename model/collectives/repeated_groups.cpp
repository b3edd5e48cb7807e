#include "model/collectives/repeated_groups.hpp"

#include <algorithm>
#include <ranges>

namespace foretrain {

std::optional<int> node_shift(const std::vector<int>& from, const std::vector<int>& to, const Topology& topology) {
  if (from.empty() || to.empty()) return {};
  const int shift = to.front() - from.front();
  const auto shifted = [shift](int a, int b) { return a + shift == b; };
  if (shift % topology.gpus_per_node() != 0 || !std::ranges::equal(from, to, shifted)) return {};
  return topology.nodes_are_alike() ? std::optional(shift) : std::nullopt;
}

std::optional<int> node_shift(const std::vector<std::vector<int>>& from, const std::vector<std::vector<int>>& to,
                              const Topology& topology) {
  if (from.empty() || to.empty()) return {};
  const std::optional<int> shift = node_shift(from.front(), to.front(), topology);
  const auto shifted = [&](const std::vector<int>& a, const std::vector<int>& b) {
    return node_shift(a, b, topology) == shift;
  };
  return shift && std::ranges::equal(from, to, shifted) ? shift : std::nullopt;
}

std::vector<int> shifts_of_first(const std::vector<std::vector<int>>& groups, const Topology& topology) {
  if (groups.size() < 2) return {};
  const auto [lowest, highest] = std::ranges::minmax(groups.front());
  const int span = (topology.node_of(highest) - topology.node_of(lowest) + 1) * topology.gpus_per_node();
  std::vector<int> shifts;
  for (const std::vector<int>& group : groups | std::views::drop(1)) {
    const std::optional<int> shift = node_shift(groups.front(), group, topology);
    const int before = shifts.empty() ? 0 : shifts.back();
    if (!shift || *shift - before < span) return {};
    shifts.push_back(*shift);
  }
  return shifts;
}

bool is_between_gpus(const LoweredCollective& lowered, const Topology& topology) {
  for (const LoweredCollective::Phase& phase : lowered.phases) {
    for (const Flow& flow : phase.flows) {
      if (!topology.is_gpu(flow.source) || !topology.is_gpu(flow.destination)) return false;
    }
  }
  return true;
}

void shift_flows(LoweredCollective& lowered, int ranks) {
  for (LoweredCollective::Phase& phase : lowered.phases) {
    for (Flow& flow : phase.flows) flow.source += ranks, flow.destination += ranks;
  }
}

void repeat_flows(LoweredCollective& lowered, const std::vector<int>& shifts) {
  for (LoweredCollective::Phase& phase : lowered.phases) {
    const std::size_t flows = phase.flows.size();
    phase.flows.reserve(flows * (shifts.size() + 1));
    for (const int shift : shifts) {
      for (std::size_t i = 0; i < flows; ++i) {
        Flow flow = phase.flows[i];
        flow.source += shift, flow.destination += shift;
        phase.flows.push_back(flow);
      }
    }
  }
}

}  // namespace foretrain

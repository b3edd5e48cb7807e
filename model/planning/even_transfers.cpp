#include "model/planning/even_transfers.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "model/base/number.hpp"
#include "model/collectives/link_load.hpp"

namespace foretrain {

namespace {

/// GPUs that flows join, directly or through others.
class JoinedGpus {
 public:
  explicit JoinedGpus(int gpus) : to_(at_index(gpus)) { std::iota(to_.begin(), to_.end(), 0); }
  int group_of(int gpu) {
    while (to_[at_index(gpu)] != gpu) gpu = to_[at_index(gpu)] = to_[at_index(to_[at_index(gpu)])];
    return gpu;
  }
  void join(int a, int b) { to_[at_index(group_of(a))] = group_of(b); }

 private:
  std::vector<int> to_;
};

/// Nothing where a flow begins or ends beside the GPUs.
std::optional<JoinedGpus> groups_of(const LoweredCollective& lowered, const Topology& topology) {
  JoinedGpus groups(topology.gpus());
  for (const LoweredCollective::Phase& phase : lowered.phases) {
    for (const Flow& flow : phase.flows) {
      if (!topology.is_gpu(flow.source) || !topology.is_gpu(flow.destination)) return std::nullopt;
      groups.join(flow.source, flow.destination);
    }
  }
  return groups;
}

bool is_even(const Step::Transfer::Part& part, const Topology& topology, LinkLoad& load) {
  std::optional<JoinedGpus> groups = groups_of(part.lowered, topology);
  if (!groups) return false;
  std::map<int, Seconds> times;
  for (const LoweredCollective::Phase& phase : part.lowered.phases) {
    std::map<int, std::vector<Flow>> flows;
    for (const Flow& flow : phase.flows) flows[groups->group_of(flow.source)].push_back(flow);
    load.add(phase.flows);
    for (const auto& [group, own] : flows) {
      times[group] += (phase.latency + load.busiest_of(own)) * static_cast<double>(phase.repeat);
    }
    load.clear();
  }
  constexpr double rounding = 1e-9;
  return std::ranges::all_of(times,
                             [&](const auto& group) { return group.second >= part.uncontended * (1.0 - rounding); });
}

}  // namespace

bool transfers_are_even(const Step& step, const Topology& topology) {
  LinkLoad load(topology);
  return std::ranges::all_of(step.transfers, [&](const Step::Transfer& transfer) {
    const bool counts = transfer.name.starts_with("gradient ") || transfer.name.starts_with("weight ");
    return !counts || (transfer.parts.size() == 1 && is_even(transfer.parts.front(), topology, load));
  });
}

}  // namespace foretrain

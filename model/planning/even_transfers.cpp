#include "model/planning/even_transfers.hpp"

#include <algorithm>
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

/// What the groups of a transfer take, each with the others beside it.
bool is_even(const Step::Transfer::Part& part, const Topology& topology, LinkLoad& load) {
  std::optional<JoinedGpus> groups = groups_of(part.lowered, topology);
  if (!groups) return false;
  std::vector<int> number(at_index(topology.gpus()), -1);  // by any GPU of a group
  std::vector<Seconds> times;
  for (const LoweredCollective::Phase& phase : part.lowered.phases) {
    std::vector<std::vector<Flow>> flows(times.size());
    for (const Flow& flow : phase.flows) {
      int& group = number[at_index(groups->group_of(flow.source))];
      if (group < 0) group = static_cast<int>(times.size());
      times.resize(std::max(times.size(), at_index(group) + 1));
      flows.resize(times.size());
      flows[at_index(group)].push_back(flow);
    }
    load.add(phase.flows);
    for (std::size_t group = 0; group < flows.size(); ++group) {
      if (flows[group].empty()) continue;
      times[group] += (phase.latency + load.busiest_of(flows[group]).time) * static_cast<double>(phase.repeat);
    }
    load.clear();
  }
  constexpr double rounding = 1e-9;
  return std::ranges::all_of(times, [&](Seconds time) { return time >= part.uncontended * (1.0 - rounding); });
}

}  // namespace

bool transfers_are_even(const Step& step, const Topology& topology) {
  LinkLoad load(topology);
  return std::ranges::all_of(step.transfers, [&](const Step::Transfer& transfer) {
    if (!is_of_parameters(transfer.kind)) return true;
    if (transfer.parts.size() != 1) return false;
    // Some nodes further on it meets the same.
    const bool is_known = transfer.repeats >= 0 && is_of_parameters(step.transfers[at_index(transfer.repeats)].kind);
    return is_known || is_even(transfer.parts.front(), topology, load);
  });
}

}  // namespace foretrain

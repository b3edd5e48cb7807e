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
      times[group] += (phase.latency + load.busiest_of(flows[group])) * static_cast<double>(phase.repeat);
    }
    load.clear();
  }
  constexpr double rounding = 1e-9;
  return std::ranges::all_of(times, [&](Seconds time) { return time >= part.uncontended * (1.0 - rounding); });
}

/// Whether the part is the other one, some nodes further on: there it meets the same.
bool repeats(const Step::Transfer::Part& part, const Step::Transfer::Part& other, const Topology& topology) {
  const std::vector<LoweredCollective::Phase>&own = part.lowered.phases, &others = other.lowered.phases;
  if (part.uncontended != other.uncontended || own.size() != others.size()) return false;
  std::optional<int> shift;
  const auto shifted = [&](const Flow& a, const Flow& b) {
    if (!shift) shift = a.source - b.source;
    return a.source - b.source == *shift && a.destination - b.destination == *shift && a.bytes == b.bytes &&
           a.weight == b.weight && topology.is_gpu(a.source) && topology.is_gpu(a.destination);
  };
  const auto same = [&](const LoweredCollective::Phase& a, const LoweredCollective::Phase& b) {
    return a.latency == b.latency && a.repeat == b.repeat && std::ranges::equal(a.flows, b.flows, shifted);
  };
  return std::ranges::equal(own, others, same) && shift.value_or(0) % topology.gpus_per_node() == 0;
}

}  // namespace

bool transfers_are_even(const Step& step, const Topology& topology) {
  LinkLoad load(topology);
  std::vector<const Step::Transfer::Part*> even;
  const bool alike = topology.nodes_are_alike();
  return std::ranges::all_of(step.transfers, [&](const Step::Transfer& transfer) {
    const bool counts = transfer.name.starts_with("gradient ") || transfer.name.starts_with("weight ");
    if (!counts) return true;
    if (transfer.parts.size() != 1) return false;
    const Step::Transfer::Part& part = transfer.parts.front();
    const auto is_repeated = [&](const auto* other) { return repeats(part, *other, topology); };
    if (alike && std::ranges::any_of(even, is_repeated)) return true;
    even.push_back(&part);
    return is_even(part, topology, load);
  });
}

}  // namespace foretrain

#include "model/planning/even_transfers.hpp"

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>

#include "model/base/number.hpp"
#include "model/collectives/link_load.hpp"

namespace foretrain {

namespace {

/// What the groups of a transfer take, each with the others beside it. A group: GPUs that flows join, directly or
/// through others.
bool is_even(const Step::Transfer::Part& part, const Topology& topology, LinkLoad& load) {
  if (!part.lowered.is_between_gpus(topology)) return false;
  boost::disjoint_sets_with_storage<> groups(at_index(topology.gpus()));
  for (const LoweredCollective::Phase& phase : part.lowered.phases) {
    for (const Flow& flow : phase.flows) groups.union_set(at_index(flow.source), at_index(flow.destination));
  }
  std::vector<int> number(at_index(topology.gpus()), -1);  // by any GPU of a group
  std::vector<Seconds> times;
  for (const LoweredCollective::Phase& phase : part.lowered.phases) {
    std::vector<std::vector<Flow>> flows(times.size());
    for (const Flow& flow : phase.flows) {
      int& group = number[groups.find_set(at_index(flow.source))];
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

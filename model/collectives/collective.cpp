// Explicit algorithms. What the library has of that name runs as it does under `auto` (library.hpp). Else the
// schedule as written, with headers of small messages (network_effects.hpp) and what the library loses in carrying it
// out (library_losses.cpp), the same as `auto` counts. Without a library it runs on the links' achieved bandwidth
// alone, a ring's hops of unequal length averaged.
#include "model/collectives/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/collectives/algorithm.hpp"
#include "model/collectives/contention.hpp"
#include "model/collectives/exchange.hpp"
#include "model/collectives/gloo.hpp"
#include "model/collectives/library.hpp"
#include "model/collectives/network_effects.hpp"
#include "model/collectives/placement.hpp"

namespace foretrain {

namespace {

/// Bytes of the schedule's whole message: in exchanges every rank's buffer has chunks of its own.
Bytes message_size(const CollectiveCall& call) {
  return is_exchange(call.operation) ? call.size * static_cast<double>(call.groups.front().size()) : call.size;
}

/// Groups that share one schedule, and the endpoints of its participants in each of them.
struct ScheduledGroups {
  ScheduleShape shape;
  Schedule schedule;
  std::vector<std::vector<EndpointId>> placed;
};

ScheduleShape shape_of(const CollectiveCall& call, const std::vector<int>& group, const Topology& topology) {
  const Algorithm& algorithm = algorithm_of(call.algorithm);
  return algorithm.shape != nullptr ? algorithm.shape(call, group, topology) : ScheduleShape(1);
}

std::vector<ScheduledGroups> schedule_groups(const CollectiveCall& call, const Topology& topology) {
  const int ranks = static_cast<int>(call.groups.front().size());
  std::vector<ScheduledGroups> result;
  for (std::vector<EndpointId>& endpoints : place_participants(call, topology)) {
    ScheduleShape shape = shape_of(call, {endpoints.begin(), endpoints.begin() + ranks}, topology);
    auto same = std::find_if(result.begin(), result.end(), [&](const auto& other) { return other.shape == shape; });
    if (same == result.end()) {
      Schedule schedule = algorithm_of(call.algorithm).schedule(call.operation, ranks, shape);
      same = result.insert(result.end(), {std::move(shape), std::move(schedule), {}});
    }
    same->placed.push_back(std::move(endpoints));
  }
  return result;
}

/// Adds the flows of phase `index` to `phase`. In a run of several phases with unequal chunks each counts the largest
/// chunk: at most one byte per chunk too much.
void append_flows(const ScheduledGroups& groups, int index, Bytes message, const Topology& topology,
                  LoweredCollective::Phase& phase) {
  const Schedule& schedule = groups.schedule;
  const Phase transfers = schedule.phase(index);
  const Bytes largest = chunk_range_size(message, schedule.chunks, 0, 1);
  phase.flows.reserve(phase.flows.size() + transfers.size() * groups.placed.size());
  for (const std::vector<EndpointId>& endpoints : groups.placed) {
    for (const Transfer& transfer : transfers) {
      const Bytes bytes = phase.repeat > 1 ? largest * static_cast<double>(transfer.chunks)
                                           : transfer_size(message, schedule.chunks, transfer);
      const EndpointId source = endpoints[transfer.source];
      const EndpointId destination = endpoints[transfer.destination];
      if (source == destination) continue;  // a server on the worker's own GPU
      phase.flows.push_back({source, destination, bytes});
      phase.latency = std::max(phase.latency, topology.latency(source, destination));
    }
  }
}

std::vector<LoweredCollective::Phase> lower_phases(const std::vector<ScheduledGroups>& all, Bytes message,
                                                   const Topology& topology) {
  int phases = 0;
  for (const ScheduledGroups& groups : all) phases = std::max(phases, groups.schedule.phases);
  std::vector<LoweredCollective::Phase> lowered;
  for (int index = 0; index < phases;) {
    int length = phases - index;
    for (const ScheduledGroups& groups : all) {
      if (index < groups.schedule.phases) length = std::min(length, groups.schedule.phase_run(index).length);
    }
    LoweredCollective::Phase& phase = lowered.emplace_back(LoweredCollective::Phase{Seconds(0.0), {}, length});
    for (const ScheduledGroups& groups : all) {
      if (index >= groups.schedule.phases) continue;
      const int representative = groups.schedule.phase_run(index).representative;
      append_flows(groups, std::min(representative, index + length - 1), message, topology, phase);
    }
    index += length;
  }
  return lowered;
}

/// Flows of a phase share what one flow has: each has its part of the link that it shares with most others.
void divide_lane(LoweredCollective::Phase& phase, const Topology& topology) {
  phase.flows = merge_by_ends(std::move(phase.flows));
  std::vector<double> weight(static_cast<std::size_t>(topology.links()));
  visit_links(phase.flows, topology, [&](const Flow& flow, LinkId link) { weight[at_index(link)] += flow.weight; });
  std::vector<LinkId> crossed;
  for (Flow& flow : phase.flows) {
    crossed.clear();
    topology.append_route(flow.source, flow.destination, crossed);
    double most = flow.weight;
    for (const LinkId link : crossed) most = std::max(most, weight[at_index(link)]);
    flow.weight /= most;
  }
}

LoweredCollective lower_named(const CollectiveCall& call, const Topology& topology, const Calibration& calibration) {
  const Algorithm& algorithm = algorithm_of(call.algorithm);
  if (!algorithm.has(call.operation)) {
    throw ImpossiblePlan(fmt::format("this algorithm has no schedule for this operation; these have one: {}",
                                     fmt::join(algorithms_for(call.operation), ", ")));
  }
  if (auto own = lower_in_library(call, topology, calibration)) return *std::move(own);
  std::vector<LoweredCollective::Phase> phases;
  const bool many = call.groups.front().size() >= fewest_ranks_aggregated;
  if (many && call.operation == CollectiveOperation::all_to_all && algorithm.all_to_all_of_many != nullptr) {
    for (const std::vector<int>& group : call.groups) shape_of(call, group, topology);  // refuses what does not suit
    phases = algorithm.all_to_all_of_many(call, topology);
  } else {
    phases = lower_phases(schedule_groups(call, topology), message_size(call), topology);
    for (LoweredCollective::Phase& phase : phases) {
      add_headers(phase, topology);
      average_ring_latency(phase, topology);
    }
  }
  add_losses(phases, call, topology, calibration);
  return {.chosen_algorithm = std::string(name(call.algorithm)), .phases = std::move(phases)};
}

/// The named algorithm where it is faster, and the hardware can carry it out.
void take_if_faster(CollectiveCall call, SyncAlgorithm named, const Topology& topology, const Calibration& calibration,
                    LoweredCollective& best) {
  call.algorithm = named;
  if (!algorithm_of(named).has(call.operation)) return;
  try {
    LoweredCollective lowered = lower_named(call, topology, calibration);
    if (uncontended_time(lowered, topology) < uncontended_time(best, topology)) best = std::move(lowered);
  } catch (const ImpossiblePlan&) {
  }
}

/// Without a library nobody spreads rings over nodes unevenly filled, or counts steps: schedules as written may win.
LoweredCollective lower_fastest(const CollectiveCall& call, const Topology& topology, const Calibration& calibration) {
  LoweredCollective best = lower_automatic(call, topology, calibration);
  if (!topology.nccl().none() || call.groups.front().size() < 2 || is_exchange(call.operation)) return best;
  take_if_faster(call, SyncAlgorithm::ring, topology, calibration, best);
  take_if_faster(call, SyncAlgorithm::double_tree, topology, calibration, best);
  return best;
}

LoweredCollective lower_by_schedule(const CollectiveCall& call, const Topology& topology,
                                    const Calibration& calibration) {
  return call.algorithm == SyncAlgorithm::automatic ? lower_fastest(call, topology, calibration)
                                                    : lower_named(call, topology, calibration);
}

LoweredCollective lower_by_gloo(const CollectiveCall& call, const Topology& topology, const Calibration& calibration) {
  LoweredCollective lowered = call.operation == CollectiveOperation::broadcast
                                  ? broadcast_by_gloo(call, topology)
                                  : lower_by_schedule(call, topology, calibration);
  add_gloo_costs(lowered, call, topology);
  return lowered;
}

/// Whether every group does what the first one does, and has its nodes for itself.
bool repeat_on_own_nodes(const RankGroups& groups, const Topology& topology) {
  if (groups.size() < 2 || groups.families().size() > 1) return false;
  const auto [lowest, highest] = std::ranges::minmax(groups.front());
  const int span = (topology.node_of(highest) - topology.node_of(lowest) + 1) * topology.gpus_per_node();
  const std::vector<int>& shifts = groups.families().front().shifts;
  for (std::size_t i = 1; i < shifts.size(); ++i) {
    if (!topology.repeats_after(shifts[i]) || shifts[i] - shifts[i - 1] < span) return false;
  }
  return true;
}

/// Adds the flows again for each shift but the first one.
void repeat_flows(LoweredCollective& lowered, const std::vector<int>& shifts) {
  for (LoweredCollective::Phase& phase : lowered.phases) {
    const std::size_t flows = phase.flows.size();
    phase.flows.reserve(flows * shifts.size());
    for (std::size_t copy = 1; copy < shifts.size(); ++copy) {
      for (std::size_t i = 0; i < flows; ++i) phase.flows.push_back(phase.flows[i].shifted(shifts[copy]));
    }
  }
}

}  // namespace

LoweredCollective lower(const CollectiveCall& call, const Topology& topology, const Calibration& calibration) {
  if (repeat_on_own_nodes(call.groups, topology)) {
    CollectiveCall first = call;
    first.groups = {call.groups.front()};
    LoweredCollective lowered = lower(first, topology, calibration);
    if (lowered.is_between_gpus(topology)) {
      repeat_flows(lowered, call.groups.families().front().shifts);
      return lowered;
    }
  }
  const std::optional<CollectiveCall> by_gloo = call_of_gloo(call, topology);
  LoweredCollective lowered =
      by_gloo ? lower_by_gloo(*by_gloo, topology, calibration) : lower_by_schedule(call, topology, calibration);
  share_links(lowered, call.operation, topology);
  return lowered;
}

bool LoweredCollective::is_between_gpus(const Topology& topology) const {
  return std::ranges::all_of(phases, [&](const Phase& phase) {
    return std::ranges::all_of(phase.flows, [&](const Flow& flow) {
      return topology.is_gpu(flow.source) && topology.is_gpu(flow.destination);
    });
  });
}

LoweredCollective LoweredCollective::shifted(int ranks) const {
  const auto shift = [phases = phases, ranks] {
    std::vector<Phase> shifted = phases;
    for (Phase& phase : shifted) {
      for (Flow& flow : phase.flows) flow = flow.shifted(ranks);
    }
    return shifted;
  };
  return {chosen_algorithm, {phases.size(), shift}, times};
}

void share_links(LoweredCollective& lowered, CollectiveOperation operation, const Topology& topology) {
  const Sharing& sharing = topology.sharing();
  const double connections = operation == CollectiveOperation::send_receive ? sharing.queue_pairs : 1.0;
  if (sharing.fairness == Fairness::flow && connections == 1.0) return;
  for (LoweredCollective::Phase& phase : lowered.phases) {
    if (sharing.fairness == Fairness::traffic_class) divide_lane(phase, topology);
    for (Flow& flow : phase.flows) flow.weight *= connections;
  }
}

std::vector<Flow> merge_by_ends(std::vector<Flow> flows, Flow (Flow::*join)(const Flow&) const) {
  const auto ends = [](const Flow& flow) { return std::pair(flow.source, flow.destination); };
  if (!std::ranges::is_sorted(flows, {}, ends)) std::ranges::stable_sort(flows, {}, ends);
  std::size_t kept = 0;
  for (const Flow& flow : flows) {
    if (kept > 0 && ends(flows[kept - 1]) == ends(flow)) {
      flows[kept - 1] = (flows[kept - 1].*join)(flow);
    } else {
      flows[kept++] = flow;
    }
  }
  flows.resize(kept);
  return flows;
}

double bus_bandwidth_factor(CollectiveOperation operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  if (operation == CollectiveOperation::all_reduce) return 2.0 * others;
  return has_parts(operation) || operation == CollectiveOperation::all_to_all ? others : 1.0;
}

}  // namespace foretrain

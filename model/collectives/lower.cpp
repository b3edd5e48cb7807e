// Explicit algorithms: the schedule as written, on the links' achieved bandwidth, without any protocol overhead.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "model/collectives/automatic.hpp"
#include "model/collectives/collective.hpp"
#include "model/collectives/link_load.hpp"
#include "model/collectives/network_effects.hpp"
#include "model/collectives/placement.hpp"

namespace foretrain {

namespace {

void check_call(const CollectiveCall& call, const Topology& topology) {
  if (call.groups.empty() || call.groups.front().empty()) throw std::invalid_argument("a collective needs ranks");
  if (!(call.size >= Bytes(0.0)) || !is_finite(call.size)) {
    throw std::invalid_argument("the size of a collective must be finite and not negative");
  }
  std::set<int> seen;
  for (const std::vector<int>& group : call.groups) {
    if (group.size() != call.groups.front().size()) {
      throw std::invalid_argument("the groups of one collective must have equally many ranks");
    }
    for (const int rank : group) {
      if (rank < 0 || rank >= topology.gpus()) {
        throw std::invalid_argument(fmt::format("rank {} is none of the {} GPUs", rank, topology.gpus()));
      }
      if (!seen.insert(rank).second) throw std::invalid_argument(fmt::format("rank {} takes part twice", rank));
    }
  }
}

bool wants_ring_order(SyncAlgorithm algorithm) {
  return algorithm == SyncAlgorithm::ring || algorithm == SyncAlgorithm::bidirectional_ring ||
         algorithm == SyncAlgorithm::hierarchical;
}

/// The endpoint of every participant of the schedule, for each group: ranks first, then servers.
std::vector<std::vector<EndpointId>> place(const CollectiveCall& call, const Topology& topology) {
  const bool exchange =
      call.operation == CollectiveOperation::all_to_all || call.operation == CollectiveOperation::send_receive;
  RingOrders orders(topology);
  std::vector<std::vector<EndpointId>> placed;
  for (const std::vector<int>& group : call.groups) {
    // Who sends to whom is part of an exchange's meaning, so it keeps the caller's order.
    placed.push_back(wants_ring_order(call.algorithm) && !exchange ? orders.order(group) : group);
    if (call.algorithm == SyncAlgorithm::parameter_server) {
      const std::vector<EndpointId> servers = server_endpoints(call, group, topology);
      placed.back().insert(placed.back().end(), servers.begin(), servers.end());
    }
  }
  return placed;
}

int ranks_per_node(const CollectiveCall& call, const Topology& topology) {
  std::set<std::size_t> counts;
  for (const std::vector<int>& group : call.groups) {
    for (const std::vector<int>& ranks : split_by_node(group, topology)) counts.insert(ranks.size());
  }
  if (counts.size() != 1) {
    throw std::invalid_argument("hierarchical all-reduce needs the same number of ranks on every node");
  }
  return static_cast<int>(*counts.begin());
}

/// Bytes of the schedule's whole message: in exchanges every rank's buffer has chunks of its own.
Bytes message_size(const CollectiveCall& call) {
  const bool exchange =
      call.operation == CollectiveOperation::all_to_all || call.operation == CollectiveOperation::send_receive;
  return exchange ? call.size * static_cast<double>(call.groups.front().size()) : call.size;
}

/// The phases [first, first + repeat) of a schedule, which move the same amounts, for all groups at once. Where chunks
/// are unequal, each repetition counts the largest: at most one byte per chunk too much.
LoweredPhase lower_run(const Schedule& schedule, int first, int repeat, Bytes message,
                       const std::vector<std::vector<EndpointId>>& placed, const Topology& topology) {
  const Phase transfers = schedule.phase(first);
  LoweredPhase lowered{.latency = Seconds(0.0), .flows = {}, .repeat = repeat};
  lowered.flows.reserve(transfers.size() * placed.size());
  const Bytes largest = chunk_size(message, schedule.chunks, 0);
  for (const std::vector<EndpointId>& endpoints : placed) {
    for (const Transfer& transfer : transfers) {
      const EndpointId source = endpoints[transfer.source];
      const EndpointId destination = endpoints[transfer.destination];
      if (source == destination) continue;  // a server on the worker's own GPU
      const Bytes bytes = repeat > 1
                              ? largest * static_cast<double>(transfer.chunks)
                              : chunk_range_size(message, schedule.chunks, transfer.first_chunk, transfer.chunks);
      lowered.flows.push_back({source, destination, bytes});
      lowered.latency = std::max(lowered.latency, topology.route(source, destination).latency);
    }
  }
  return lowered;
}

}  // namespace

LoweredCollective lower(const CollectiveCall& call, const Topology& topology, const Calibration& calibration) {
  check_call(call, topology);
  if (call.algorithm == SyncAlgorithm::automatic) return lower_automatic(call, topology, calibration);

  const AlgorithmRow* row = find_algorithm(call.algorithm, call.operation);
  if (row == nullptr) {
    throw std::invalid_argument("this algorithm has no schedule for this operation: use `ring` or `auto`");
  }
  const int ranks = static_cast<int>(call.groups.front().size());
  const int parts = call.algorithm == SyncAlgorithm::hierarchical ? ranks_per_node(call, topology) : call.servers;
  const Schedule schedule = row->build(ranks, parts);
  const std::vector<std::vector<EndpointId>> placed = place(call, topology);
  LoweredCollective lowered{.chosen_algorithm = row->name, .phases = {}};
  for (int phase = 0; phase < schedule.phases;) {
    const int run = schedule.run_length(phase);
    lowered.phases.push_back(lower_run(schedule, phase, run, message_size(call), placed, topology));
    phase += run;
  }
  add_network_effects(lowered, topology);
  return lowered;
}

Seconds uncontended_time(const LoweredCollective& lowered, const Topology& topology) {
  LinkLoad load(topology);
  Seconds time(0.0);
  for (const LoweredPhase& phase : lowered.phases) {
    time += (phase.latency + load.busiest(phase.flows)) * static_cast<double>(phase.repeat);
  }
  return time;
}

double bus_bandwidth_factor(CollectiveOperation operation, int ranks) {
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  switch (operation) {
    case CollectiveOperation::all_reduce:
      return 2.0 * others;
    case CollectiveOperation::all_gather:
    case CollectiveOperation::reduce_scatter:
    case CollectiveOperation::all_to_all:
      return others;
    case CollectiveOperation::broadcast:
    case CollectiveOperation::reduce:
    case CollectiveOperation::send_receive:
      return 1.0;
  }
  return 1.0;
}

}  // namespace foretrain

#include "model/collectives/gloo.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "model/base/number.hpp"
#include "model/collectives/contention.hpp"
#include "model/collectives/exchange.hpp"
#include "model/collectives/network_effects.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

const Processor* processor_of(int rank, const Topology& topology) {
  const auto& processor = topology.gpu_model(topology.node_of(rank)).processor;
  return processor ? &*processor : nullptr;
}

/// Bytes that the hottest rank of an all-to-all sends over those it receives, which exceed the mean.
double owed(const CollectiveCall& call) {
  const double ranks = number(std::ssize(call.groups.front()));
  const double hot = std::clamp(call.tokens.imbalance, 1.0, ranks);
  return (ranks - hot) / (ranks - 1.0) / hot;
}

/// Of two ranks that exchange messages one sends first. If flows are no longer those of pairs, the whole all-to-all
/// takes longer instead.
bool takes_turns(const CollectiveCall& call) {
  return call.operation == all_to_all && call.groups.front().size() < fewest_ranks_aggregated;
}

/// Factor by which a link is busy longer if both directions are used at a time.
double longer(const CollectiveCall& call) {
  if (call.operation == all_to_all) return takes_turns(call) ? 1.0 : 1.0 + owed(call);
  return call.operation == all_gather && call.groups.front().size() == 2 && !call.by_messages ? 1.5 : 1.0;
}

/// Every other bit of the number first: neighbours lie far apart.
std::size_t reversed_bits(std::size_t number, std::size_t count) {
  std::size_t reversed = 0;
  for (std::size_t bit = std::bit_ceil(count) / 2; bit >= 1; bit /= 2, number /= 2) reversed += bit * (number % 2);
  return reversed;
}

/// The rank that came to the exchange later sends first, as the other one is ready. Ranks come in any order: as a mean
/// of these, one in which those of the same switch do not follow each other. All are as busy as the hottest.
void take_turns(LoweredCollective& lowered, const CollectiveCall& call) {
  std::map<EndpointId, std::size_t> came;
  for (const std::vector<int>& group : call.groups) {
    for (std::size_t i = 0; i < group.size(); ++i) came[group[i]] = reversed_bits(i, group.size());
  }
  std::vector<LoweredCollective::Phase> phases;
  for (const LoweredCollective::Phase& phase : std::as_const(lowered.phases)) {
    LoweredCollective::Phase there = phase, back = phase;
    std::erase_if(there.flows, [&](const Flow& flow) { return came[flow.source] < came[flow.destination]; });
    std::erase_if(back.flows, [&](const Flow& flow) { return came[flow.source] >= came[flow.destination]; });
    for (Flow& flow : back.flows) flow.bytes *= owed(call);
    phases.push_back(std::move(there));
    phases.push_back(std::move(back));
  }
  lowered.phases = std::move(phases);
}

/// Messages that a rank sends and receives in each repetition of a phase; rings have two pieces in flight.
double messages(const CollectiveCall& call) {
  switch (call.operation) {
    case all_to_all:
      return (takes_turns(call) ? 1.0 : 2.0) * (number(std::ssize(call.groups.front())) - 1.0);
    case broadcast:
      return call.rotating_root ? 1.0 / number(std::ssize(call.groups.front())) : 1.0;
    default:
      return call.by_messages ? 2.0 : 4.0;
  }
}

/// Messages that a rank waits for: those that it receives.
double waits(const CollectiveCall& call) {
  const bool sends_as_many = call.operation != all_to_all && call.operation != broadcast;
  return sends_as_many ? messages(call) / 2.0 : std::min(1.0, messages(call));
}

}  // namespace

std::optional<CollectiveCall> call_of_gloo(const CollectiveCall& call, const Topology& topology) {
  using enum SyncAlgorithm;
  if (call.operation == send_receive || (call.algorithm != automatic && call.algorithm != ring)) return std::nullopt;
  for (const std::vector<int>& group : call.groups) {
    for (const int rank : group) {
      if (processor_of(rank, topology) == nullptr) return std::nullopt;
    }
  }
  CollectiveCall own = call;
  if (call.operation == reduce_scatter && !call.by_messages) own.operation = all_reduce;
  own.algorithm = call.operation == all_to_all ? automatic : ring;
  return own;
}

LoweredCollective broadcast_by_gloo(const CollectiveCall& call, const Topology& topology) {
  LoweredCollective lowered{.chosen_algorithm = "binomial tree", .phases = {}};
  const std::size_t ranks = call.groups.front().size(), roots = call.rotating_root ? ranks : 1;
  for (std::size_t root = 0; root < roots; ++root) {
    for (std::size_t distance = std::bit_ceil(ranks) / 2; distance >= 1; distance /= 2) {
      LoweredCollective::Phase& phase = lowered.phases.emplace_back();
      for (const std::vector<int>& group : call.groups) {
        for (std::size_t at = 0; at + distance < ranks; at += 2 * distance) {
          const int from = group[(root + at) % ranks], to = group[(root + at + distance) % ranks];
          phase.flows.push_back({from, to, call.size / number(roots)});
          phase.latency = std::max(phase.latency, topology.latency(from, to) / number(roots));
        }
      }
      add_headers(phase, topology);
    }
  }
  return lowered;
}

void add_gloo_costs(LoweredCollective& lowered, const CollectiveCall& call, const Topology& topology) {
  const std::vector<int>& ranks = call.groups.front();
  if (ranks.size() < 2 || lowered.phases.empty()) return;
  if (takes_turns(call)) take_turns(lowered, call);
  const Bytes sent = call.size * bus_bandwidth_factor(call.operation, static_cast<int>(ranks.size()));
  const auto sums = [&](const Processor& own) {
    return sent / own.sum_rate + (call.by_messages ? Seconds(0.0) : own.all_reduce);
  };
  const auto busy = [&](const Processor& own) {
    Seconds time = sums(own), idle;
    for (const LoweredCollective::Phase& phase : lowered.phases) {
      time += own.message * (messages(call) * phase.repeat);
      idle += own.wake * (waits(call) * phase.repeat);
    }
    return idle + time / own.share;
  };
  const Processor* slowest = processor_of(ranks.front(), topology);
  Seconds longest = busy(*slowest);
  for (const std::vector<int>& group : call.groups) {
    for (const int rank : group) {
      const Processor* own = processor_of(rank, topology);
      if (const Seconds time = busy(*own); time > longest) longest = time, slowest = own;
    }
  }
  LoweredCollective::Phase& first = lowered.phases.front();
  first.latency += sums(*slowest) / number(first.repeat);
  for (LoweredCollective::Phase& phase : lowered.phases) {
    for (Flow& flow : phase.flows) flow.bytes *= longer(call);
    phase.latency += slowest->message * messages(call) + slowest->wake * waits(call);
  }
  const Seconds held_up = longest - uncontended_time(lowered, topology);
  first.latency += std::max(held_up, Seconds(0.0)) / number(first.repeat);
}

Seconds gloo_message(const Flow& flow, const Topology& topology) {
  Seconds longest;
  for (const EndpointId end : {flow.source, flow.destination}) {
    if (!topology.is_gpu(end)) continue;
    if (const Processor* processor = processor_of(end, topology)) {
      longest = std::max(longest, processor->message + processor->wake + flow.bytes / processor->sum_rate);
    }
  }
  return longest;
}

}  // namespace foretrain

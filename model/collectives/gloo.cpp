#include "model/collectives/gloo.hpp"

#include <algorithm>
#include <bit>

#include "model/base/number.hpp"
#include "model/collectives/contention.hpp"
#include "model/collectives/network_effects.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

const Processor* processor_of(int rank, const Topology& topology) {
  const auto& processor = topology.gpu_model(topology.node_of(rank)).processor;
  return processor ? &*processor : nullptr;
}

/// How much longer a link is busy than with what passes over it where both directions are used at a time: the hottest
/// rank gets more than the mean from the others, and owes them less.
double turns(const CollectiveCall& call) {
  const double ranks = number(std::ssize(call.groups.front()));
  if (call.operation == all_to_all) {
    const double hot = std::clamp(call.tokens.imbalance, 1.0, ranks);
    return 1.0 + (ranks - hot) / (ranks - 1.0) / hot;
  }
  return call.operation == all_gather && ranks == 2.0 && !call.by_messages ? 1.5 : 1.0;
}

/// That a rank sends and receives in each repetition of a phase; rings have two pieces under way.
double messages(const CollectiveCall& call) {
  switch (call.operation) {
    case all_to_all:
      return 2.0 * (number(std::ssize(call.groups.front())) - 1.0);
    case broadcast:
      return 1.0;
    default:
      return call.by_messages ? 2.0 : 4.0;
  }
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
  const std::size_t ranks = call.groups.front().size();
  for (std::size_t distance = std::bit_ceil(ranks) / 2; distance >= 1; distance /= 2) {
    LoweredCollective::Phase& phase = lowered.phases.emplace_back();
    for (const std::vector<int>& group : call.groups) {
      for (std::size_t from = 0; from + distance < ranks; from += 2 * distance) {
        phase.flows.push_back({group[from], group[from + distance], call.size});
        phase.latency = std::max(phase.latency, topology.latency(group[from], group[from + distance]));
      }
    }
    add_headers(phase, topology);
  }
  return lowered;
}

void add_gloo_costs(LoweredCollective& lowered, const CollectiveCall& call, const Topology& topology) {
  const std::vector<int>& ranks = call.groups.front();
  if (ranks.size() < 2 || lowered.phases.empty()) return;
  const Bytes sent = call.size * bus_bandwidth_factor(call.operation, static_cast<int>(ranks.size()));
  const auto sums = [&](const Processor& own) {
    return sent / own.sum_rate + (call.by_messages ? Seconds(0.0) : own.all_reduce);
  };
  const auto busy = [&](const Processor& own) {
    Seconds time = sums(own);
    for (const LoweredCollective::Phase& phase : lowered.phases) time += own.message * (messages(call) * phase.repeat);
    return time / own.share;
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
    for (Flow& flow : phase.flows) flow.bytes *= turns(call);
    phase.latency += slowest->message * messages(call);
  }
  const Seconds held_up = longest - uncontended_time(lowered, topology);
  first.latency += std::max(held_up, Seconds(0.0)) / number(first.repeat);
}

Seconds gloo_message(const Flow& flow, const Topology& topology) {
  Seconds longest;
  for (const EndpointId end : {flow.source, flow.destination}) {
    if (!topology.is_gpu(end)) continue;
    if (const Processor* processor = processor_of(end, topology)) {
      longest = std::max(longest, processor->message + flow.bytes / processor->sum_rate);
    }
  }
  return longest;
}

}  // namespace foretrain

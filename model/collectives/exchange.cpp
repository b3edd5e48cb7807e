#include "model/collectives/exchange.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "model/collectives/placement.hpp"

namespace foretrain {

namespace {

/// Ranks with what they have to send out of their node, in messages.
struct Sender {
  int rank = 0;
  std::int64_t messages = 0;
};

Seconds latency_of(const std::vector<Flow>& flows, const Topology& topology) {
  Seconds latency(0.0);
  for (const Flow& flow : flows) {
    latency = std::max(latency, topology.latency(flow.source, flow.destination));
  }
  return latency;
}

/// Whether a route between nodes is the way out and the way in, with nothing between them that depends on the pair.
bool only_ends_matter(const Topology& topology) {
  return topology.fabric_is_one_switch() && !topology.limits_connections();
}

/// More ranks send to one rank of every other node, to each place of a node in its turn, what they owe all of it: every
/// pair of nodes is loaded as it should be, and so are all ranks.
constexpr std::size_t most_ranks_in_pairs = 1024;

void append_far_pairs(const std::vector<std::vector<int>>& nodes, bool by_node, Bytes part, const Topology& topology,
                      std::vector<Flow>& flows) {
  for (std::size_t from = 0; from < nodes.size(); ++from) {
    for (std::size_t to = 0; to < nodes.size(); ++to) {
      if (from == to) continue;
      const std::vector<int>& receivers = nodes[to];
      for (std::size_t place = 0; place < nodes[from].size(); ++place) {
        const int source = nodes[from][place];
        const Bytes carried = topology.carried_bytes(source, receivers.front(), part);
        if (by_node) {
          const int destination = receivers[(place + to + nodes.size() - from) % receivers.size()];
          flows.push_back({source, destination, carried * static_cast<double>(receivers.size())});
          continue;
        }
        for (const int destination : receivers) flows.push_back({source, destination, carried});
      }
    }
  }
}

void append_pairs(const std::vector<int>& ranks, Bytes part, std::vector<Flow>& flows) {
  for (const int source : ranks) {
    for (const int destination : ranks) {
      if (source != destination) flows.push_back({source, destination, part});
    }
  }
}

/// Those in which something moves, each as late as its farthest message.
std::vector<LoweredCollective::Phase> phases_of(std::vector<LoweredCollective::Phase> phases,
                                                const Topology& topology) {
  std::erase_if(phases, [](const LoweredCollective::Phase& phase) { return phase.flows.empty(); });
  for (LoweredCollective::Phase& phase : phases) phase.latency = latency_of(phase.flows, topology);
  return phases;
}

}  // namespace

std::vector<Flow> exchange_flows(const std::vector<int>& members, Bytes part, const Topology& topology) {
  const std::vector<std::vector<int>> nodes = split_by_node(members, topology);
  std::vector<Flow> flows;
  if (!only_ends_matter(topology)) {
    const bool by_node = members.size() > most_ranks_in_pairs && !topology.limits_connections();
    append_far_pairs(nodes, by_node, part, topology, flows);
    for (const std::vector<int>& ranks : nodes) append_pairs(ranks, part, flows);
    return flows;
  }
  std::vector<Sender> senders;
  std::int64_t largest_node = 0;
  for (const std::vector<int>& ranks : nodes) {
    append_pairs(ranks, part, flows);
    const auto others = static_cast<std::int64_t>(members.size() - ranks.size());
    for (const int rank : ranks) senders.push_back({rank, others});
    largest_node = std::max(largest_node, others * static_cast<std::int64_t>(ranks.size()));
  }
  if (nodes.size() < 2) return flows;
  // All messages in a row, node by node, as they leave and as they arrive: the message at place x goes to the rank
  // that receives at place x + (messages of the largest node), round the row's end. No node has more messages than all
  // others together, so that this is always another node.
  std::size_t to = 0;
  std::int64_t room = senders.front().messages;
  for (std::int64_t skip = largest_node; skip > 0;) {
    const std::int64_t step = std::min(skip, room);
    skip -= step;
    room -= step;
    if (room == 0) room = senders[to = (to + 1) % senders.size()].messages;
  }
  for (const Sender& from : senders) {
    for (std::int64_t left = from.messages; left > 0;) {
      const std::int64_t step = std::min(left, room);
      const Bytes carried = topology.carried_bytes(from.rank, senders[to].rank, part);
      flows.push_back({from.rank, senders[to].rank, carried * static_cast<double>(step)});
      left -= step;
      room -= step;
      if (room == 0) room = senders[to = (to + 1) % senders.size()].messages;
    }
  }
  return flows;
}

std::vector<LoweredCollective::Phase> all_to_all_at_once(const CollectiveCall& call, const Topology& topology) {
  LoweredCollective::Phase phase;
  for (const std::vector<int>& group : call.groups) {
    const std::vector<Flow> flows = exchange_flows(group, call.size / static_cast<double>(group.size()), topology);
    phase.flows.insert(phase.flows.end(), flows.begin(), flows.end());
  }
  return phases_of({std::move(phase)}, topology);
}

std::vector<LoweredCollective::Phase> all_to_all_by_node(const CollectiveCall& call, const Topology& topology) {
  LoweredCollective::Phase inside, across;
  for (const std::vector<int>& group : call.groups) {
    const Bytes part = call.size / static_cast<double>(group.size());
    const std::vector<std::vector<int>> nodes = split_by_node(group, topology);
    for (const std::vector<int>& ranks : nodes) {
      append_pairs(ranks, part * static_cast<double>(nodes.size()), inside.flows);
    }
    for (std::size_t place = 0; place < nodes.front().size(); ++place) {
      std::vector<int> rail;
      rail.reserve(nodes.size());
      for (const std::vector<int>& ranks : nodes) rail.push_back(ranks[place]);
      const std::vector<Flow> flows = exchange_flows(rail, part * static_cast<double>(nodes.front().size()), topology);
      across.flows.insert(across.flows.end(), flows.begin(), flows.end());
    }
  }
  return phases_of({std::move(inside), std::move(across)}, topology);
}

Schedule direct_all_to_all(int ranks, const ScheduleShape& /*shape*/) {
  const auto phase = [ranks](int) {
    Phase transfers;
    transfers.reserve(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks));
    for (int source = 0; source < ranks; ++source) {
      for (int destination = 0; destination < ranks; ++destination) {
        if (source == destination) continue;
        transfers.push_back({source, destination, source * ranks + destination, 1, Transfer::Kind::copy});
      }
    }
    return transfers;
  };
  return {.ranks = ranks, .chunks = ranks * ranks, .phases = ranks > 1 ? 1 : 0, .phase = phase, .run_length = [](int) {
            return 1;
          }};
}

Schedule direct_send_receive(int ranks, const ScheduleShape& /*shape*/) {
  const auto phase = [ranks](int) {
    Phase transfers;
    transfers.reserve(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      transfers.push_back({rank, (rank + 1) % ranks, rank, 1, Transfer::Kind::copy});
    }
    return transfers;
  };
  return {.ranks = ranks, .chunks = ranks, .phases = ranks > 1 ? 1 : 0, .phase = phase, .run_length = [](int) {
            return 1;
          }};
}

}  // namespace foretrain

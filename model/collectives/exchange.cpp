#include "model/collectives/exchange.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "model/base/statistics.hpp"
#include "model/collectives/placement.hpp"

namespace foretrain {

namespace {

/// Ranks with what they have to send out of their node, in messages.
struct Sender {
  int rank = 0;
  std::int64_t messages = 0;
};

/// Whether a route between nodes is the way out and the way in, with nothing between them that depends on the pair.
bool only_ends_matter(const Topology& topology) {
  return topology.fabric_is_one_switch() && !topology.limits_connections();
}

/// More ranks send what they owe a node to one of its ranks, to each place in turn. So every pair of nodes and every
/// rank is loaded as it should be.
constexpr std::size_t most_ranks_in_pairs = 1024;

/// `rails`: to the rank at the own place in each other node, all places being taken in turn where it has fewer.
void append_far_pairs(const std::vector<std::vector<int>>& nodes, bool by_node, const ExchangeParts& parts,
                      const Topology& topology, std::vector<Flow>& flows) {
  for (std::size_t from = 0; from < nodes.size(); ++from) {
    for (std::size_t to = 0; to < nodes.size(); ++to) {
      if (from == to) continue;
      const std::vector<int>& receivers = nodes[to];
      for (std::size_t place = 0; place < nodes[from].size(); ++place) {
        const int source = nodes[from][place];
        const Bytes carried = topology.carried_bytes(source, receivers.front(), parts.far);
        if (parts.rails) {
          flows.push_back({source, receivers[place % receivers.size()], carried});
        } else if (by_node) {
          const int destination = receivers[(place + to + nodes.size() - from) % receivers.size()];
          const auto messages = static_cast<double>(receivers.size());
          flows.push_back({source, destination, carried * messages, messages});
        } else {
          for (const int destination : receivers) flows.push_back({source, destination, carried});
        }
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

/// Sums of each rank for others, sent to one or two of these.
void append_far_sums(const std::vector<std::vector<int>>& nodes, Bytes part, const Topology& topology,
                     std::vector<Flow>& flows) {
  std::vector<Sender> senders;
  std::int64_t largest_node = 0, members = 0;
  for (const std::vector<int>& ranks : nodes) members += std::ssize(ranks);
  for (const std::vector<int>& ranks : nodes) {
    const std::int64_t others = members - std::ssize(ranks);
    for (const int rank : ranks) senders.push_back({rank, others});
    largest_node = std::max(largest_node, others * std::ssize(ranks));
  }
  // All messages in a row, node by node, as they leave and as they arrive. The message at place x goes to the rank
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
      const auto messages = static_cast<double>(step);
      flows.push_back({from.rank, senders[to].rank, carried * messages, messages});
      left -= step;
      room -= step;
      if (room == 0) room = senders[to = (to + 1) % senders.size()].messages;
    }
  }
}

/// Probability that some of a token's copies go to a given one of so many places.
double wanted(int copies, double places) { return 1.0 - std::pow(1.0 - 1.0 / places, copies); }

/// Bytes that ranks and nodes receive, over the mean: the hottest rank, the others of the hottest node, all other
/// ranks; the hottest node and the others.
struct Loads {
  double rank = 1.0, beside = 1.0, elsewhere = 1.0, node = 1.0, other_node = 1.0;

  Loads(std::size_t members, std::size_t of_nodes, const TokenRouting& tokens) {
    const auto ranks = static_cast<double>(members), nodes = static_cast<double>(of_nodes), on_node = ranks / nodes;
    const auto largest = [](double n) { return normal_quantile((n - 0.375) / (n + 0.25)); };
    const bool once = tokens.dispatch != ExpertDispatch::all_to_all;
    const auto at_most = [&](double load, double places) {
      return std::min(load, once ? 1.0 / wanted(tokens.copies, places) : places);
    };
    rank = at_most(tokens.imbalance, ranks);
    const double node_excess = ranks > 1.0 ? largest(nodes) / (largest(ranks) * std::sqrt(on_node)) : 0.0;
    const double of_node =
        std::clamp(1.0 + (rank - 1.0) * node_excess, rank / on_node, std::max(nodes, rank / on_node));
    if (on_node > 1.0) beside = (on_node * of_node - rank) / (on_node - 1.0);
    if (nodes > 1.0) elsewhere = (nodes - of_node) / (nodes - 1.0);
    node = at_most(1.0 + (tokens.imbalance - 1.0) * node_excess, nodes);
    if (nodes > 1.0) other_node = (nodes - node) / (nodes - 1.0);
  }
};

/// Phases in which something moves, each as late as its farthest message.
std::vector<LoweredCollective::Phase> phases_of(std::vector<LoweredCollective::Phase> phases,
                                                const Topology& topology) {
  std::erase_if(phases, [](const LoweredCollective::Phase& phase) { return phase.flows.empty(); });
  for (LoweredCollective::Phase& phase : phases) {
    for (const Flow& flow : phase.flows) {
      phase.latency = std::max(phase.latency, topology.latency(flow.source, flow.destination));
    }
  }
  return phases;
}

}  // namespace

ExchangeParts::ExchangeParts(const CollectiveCall& call, const std::vector<int>& members, const Topology& topology)
    : ExchangeParts(call.size / static_cast<double>(members.size())) {
  if (call.tokens.dispatch == ExpertDispatch::all_to_all) return;
  const auto ranks = static_cast<double>(members.size());
  const auto nodes = static_cast<double>(split_by_node(members, topology).size());
  const double on_node = ranks / nodes, on_others = std::max(on_node - 1.0, 1.0);
  const Bytes tokens = call.size / static_cast<double>(call.tokens.copies);
  const double wanted_by_rank = wanted(call.tokens.copies, ranks), wanted_by_node = wanted(call.tokens.copies, nodes);
  rails = call.tokens.dispatch == ExpertDispatch::forwarded;
  far = tokens * (rails ? wanted_by_node : wanted_by_node / on_node);
  const double handed_on = rails ? wanted_by_rank : (on_node * wanted_by_rank - wanted_by_node) / on_others;
  near = tokens * (wanted_by_rank + (nodes - 1.0) * handed_on);
}

std::vector<Flow> exchange_flows(const std::vector<int>& members, const ExchangeParts& parts,
                                 const Topology& topology) {
  const std::vector<std::vector<int>> nodes = split_by_node(members, topology);
  std::vector<Flow> flows;
  const bool aggregated = members.size() >= fewest_ranks_aggregated;
  for (const std::vector<int>& ranks : nodes) append_pairs(ranks, parts.near, flows);
  if (nodes.size() < 2) return flows;
  const auto is_like_first = [&](const std::vector<int>& ranks) { return ranks.size() == nodes.front().size(); };
  if (!aggregated || !only_ends_matter(topology) || (parts.rails && !std::ranges::all_of(nodes, is_like_first))) {
    const bool by_node = members.size() > most_ranks_in_pairs && !topology.limits_connections();
    append_far_pairs(nodes, by_node, parts, topology, flows);
  } else if (parts.rails) {
    for (std::size_t place = 0; place < nodes.front().size(); ++place) {
      std::vector<std::vector<int>> rail;
      rail.reserve(nodes.size());
      for (const std::vector<int>& ranks : nodes) rail.push_back({ranks[place]});
      append_far_sums(rail, parts.far, topology, flows);
    }
  } else {
    append_far_sums(nodes, parts.far, topology, flows);
  }
  return flows;
}

std::vector<Flow> unevenly(std::vector<Flow> flows, const std::vector<int>& members, std::size_t hottest,
                           const TokenRouting& tokens, const Topology& topology) {
  const Loads loads(members.size(), split_by_node(members, topology).size(), tokens);
  const int rank = members[hottest], node = topology.node_of(rank);
  for (Flow& flow : flows) {
    const bool to_node = topology.node_of(flow.destination) == node;
    const bool by_rank = tokens.dispatch == ExpertDispatch::all_to_all ||
                         topology.node_of(flow.source) == topology.node_of(flow.destination);
    if (by_rank) {
      flow.bytes *= flow.destination == rank ? loads.rank : to_node ? loads.beside : loads.elsewhere;
    } else {
      flow.bytes *= to_node ? loads.node : loads.other_node;
    }
  }
  return flows;
}

std::vector<LoweredCollective::Phase> all_to_all_at_once(const CollectiveCall& call, const Topology& topology) {
  LoweredCollective::Phase phase;
  for (const std::vector<int>& group : call.groups) {
    const std::vector<Flow> flows =
        exchange_flows(group, ExchangeParts(call.size / static_cast<double>(group.size())), topology);
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
      const std::vector<Flow> flows =
          exchange_flows(rail, ExchangeParts(part * static_cast<double>(nodes.front().size())), topology);
      across.flows.insert(across.flows.end(), flows.begin(), flows.end());
    }
  }
  return phases_of({std::move(inside), std::move(across)}, topology);
}

Schedule direct_exchange(CollectiveOperation operation, int ranks) {
  const bool to_all = operation == CollectiveOperation::all_to_all;
  const auto phase = [=](int) {
    Phase transfers;
    for (int source = 0; source < ranks; ++source) {
      for (int step = 1; step < (to_all ? ranks : 2); ++step) {
        const int destination = (source + step) % ranks;
        transfers.push_back(
            {source, destination, to_all ? source * ranks + destination : source, 1, Transfer::Kind::copy});
      }
    }
    return transfers;
  };
  return joined(ranks, to_all ? ranks * ranks : ranks, {{1, phase}});
}

}  // namespace foretrain

// Exchanges: every rank has messages of its own for others. Their plain schedules and, among many ranks, flows that are
// as many as the ranks instead of pairs of ranks.
#pragma once

#include "model/collectives/collective.hpp"
#include "model/collectives/schedule.hpp"

namespace foretrain {

struct ExchangeParts {
  Bytes near;          ///< to each other rank of its node
  Bytes far;           ///< to each rank of other nodes; on rails, to the one at its own place in each of them
  bool rails = false;  ///< network traffic stays among ranks at the same place of their nodes

  /// The same to all.
  explicit ExchangeParts(Bytes part) : near(part), far(part) {}
  /// An all-to-all of tokens among `members`, each of which has `call.size` of copies to send. T bytes of tokens, k
  /// copies of each at places chosen at random, over N nodes of g members, n in all. A token has experts on a given
  /// rank with probability r = 1 − (1 − 1/n)^k, on a given node with q = 1 − (1 − 1/N)^k.
  ///
  ///   all_to_all    k·T/n to every rank
  ///   deduplicated  T·q to a node, of which g·r/q ranks want it: one has it, the others get it from that one
  ///   forwarded     T·q to a node, at the sender's own place, from where every other rank that wants it gets it
  ///
  /// and T·r to each other rank of the own node.
  ExchangeParts(const CollectiveCall& call, const std::vector<int>& members, const Topology& topology);
};

/// Flows that load every link by the bytes that it carries when each of `members` sends its parts, headers included,
/// with the weight of the messages that they stand for. Pairs on one node are as they are. Among many behind a switch
/// that does not block, a message's route between nodes is its source's way out and its destination's way in, whichever
/// rank is at the other end, so that only what a rank sends and receives in all matters. Each sends to one or two ranks
/// of other nodes what it owes all of them. Over fabrics whose links depend on the pair, and where the transport limits
/// connections, every pair has a flow; beyond 1,024 ranks every rank and node.
std::vector<Flow> exchange_flows(const std::vector<int>& members, const ExchangeParts& parts, const Topology& topology);

/// Bytes of such flows if tokens are not spread evenly: those to the hottest rank and to the hottest node (that of
/// the member `hottest`) more, the others less. The hottest rank has I = `tokens.imbalance` times the mean. Loads of
/// ranks are assumed independent and normal with standard deviation (I − 1)/z(n), so that the largest of n lies I − 1
/// above the mean. The largest of N nodes' means then lies (I − 1) · z(N)/(z(n) · √g) above it. z(n), the mean of the
/// largest of n, is the quantile of (n − 3/8)/(n + 1/4) (Blom, "Statistical estimates and transformed beta-variables",
/// 1958). A token that travels once to a rank or node does so however hot that is: no more than all tokens do.
std::vector<Flow> unevenly(std::vector<Flow> flows, const std::vector<int>& members, std::size_t hottest,
                           const TokenRouting& tokens, const Topology& topology);

/// The all-to-all of a call as phases of such flows (Algorithm::all_to_all_of_many): in one phase, or inside the nodes
/// and then between equal places, which need nodes with equally many ranks.
std::vector<LoweredCollective::Phase> all_to_all_at_once(const CollectiveCall& call, const Topology& topology);
std::vector<LoweredCollective::Phase> all_to_all_by_node(const CollectiveCall& call, const Topology& topology);

/// Fewer ranks are lowered pair by pair.
constexpr std::size_t fewest_ranks_aggregated = 65;

/// Point-to-point patterns in one phase: all-to-all (every rank sends a part to every other) and the send-receive of
/// nccl-tests (every rank sends its whole buffer to the next one). The message of the schedule is all ranks' buffers
/// together (message_size), so that every part has one chunk of its own: part (s → d) of an all-to-all is chunk s·n +
/// d.
Schedule direct_exchange(CollectiveOperation operation, int ranks);

}  // namespace foretrain

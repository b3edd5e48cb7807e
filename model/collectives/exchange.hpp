// All-to-all among many ranks, with as many flows as ranks instead of pairs of ranks.
#pragma once

#include "model/collectives/collective.hpp"

namespace foretrain {

/// Flows that load every link by the bytes that it carries when each of `members` sends `part` to each other one,
/// headers included. Pairs on one node are as they are. Behind a switch that does not block, a message's route between
/// nodes is its source's way out and its destination's way in, whoever the other end is, so that only what a rank sends
/// and receives in all matters: each sends to one or two ranks of other nodes what it owes all of them. Over fabrics
/// whose links depend on the pair, and where the transport limits connections, every pair has a flow; beyond 1,024
/// ranks every rank and node.
std::vector<Flow> exchange_flows(const std::vector<int>& members, Bytes part, const Topology& topology);

/// The all-to-all of a call as phases of such flows: at once (one phase), or hierarchically (inside the nodes, between
/// equal places, which need nodes with equally many ranks).
std::vector<LoweredPhase> lower_all_to_all(const CollectiveCall& call, const Topology& topology);

/// Fewer ranks are lowered pair by pair.
constexpr std::size_t fewest_ranks_aggregated = 65;

}  // namespace foretrain

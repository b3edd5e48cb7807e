// Exchanges: every rank has messages of its own for others. Their plain schedules and, among many ranks, flows that are
// as many as the ranks instead of pairs of ranks.
#pragma once

#include "model/collectives/collective.hpp"
#include "model/collectives/schedule.hpp"

namespace foretrain {

/// Flows that load every link by the bytes that it carries when each of `members` sends `part` to each other one,
/// headers included. Pairs on one node are as they are. Behind a switch that does not block, a message's route between
/// nodes is its source's way out and its destination's way in, whichever rank is at the other end, so that only what a
/// rank sends and receives in all matters: each sends to one or two ranks of other nodes what it owes all of them. Over
/// fabrics whose links depend on the pair, and where the transport limits connections, every pair has a flow; beyond
/// 1,024 ranks every rank and node.
std::vector<Flow> exchange_flows(const std::vector<int>& members, Bytes part, const Topology& topology);

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
Schedule direct_all_to_all(int ranks, const ScheduleShape& shape);
Schedule direct_send_receive(int ranks, const ScheduleShape& shape);

}  // namespace foretrain

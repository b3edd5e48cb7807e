// Collectives between processors: as PyTorch's Gloo carries them out.
#pragma once

#include <optional>

#include "model/collectives/collective.hpp"

namespace foretrain {

/// The call as Gloo carries it out, where all its ranks are processors and the user names no other schedule than a
/// ring; else nothing. All-reduces and all-gathers are rings (gloo/allreduce.h, allgather.cc), all-to-alls messages
/// between all pairs (alltoall.cc). PyTorch reduces and scatters by a whole all-reduce, of which each rank keeps its
/// part (ProcessGroupGloo.cpp).
std::optional<CollectiveCall> call_of_gloo(const CollectiveCall& call, const Topology& topology);

/// Gloo's broadcast is a binomial tree (broadcast.cc): who has the message sends it on, half as far at every level.
LoweredCollective broadcast_by_gloo(const CollectiveCall& call, const Topology& topology);

/// Adds what a lowered call_of_gloo() takes beside its links: the core's time for each message that a rank sends and
/// receives, and for the bytes, which it adds up and copies. A share of a core holds that up where the core would be
/// busy for more than the share. Two ranks that owe each other a message each take turns: that the one which came later
/// is ready to receive is said behind what it sends itself, over the same connection (gloo/transport/tcp/pair.cc). An
/// all-gather between two is in two pieces, of which the second ones pass at the same time.
void add_gloo_costs(LoweredCollective& lowered, const CollectiveCall& call, const Topology& topology);

/// Time of a message between two ranks besides its links; zero between GPUs.
Seconds gloo_message(const Flow& flow, const Topology& topology);

}  // namespace foretrain

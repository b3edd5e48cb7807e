// What algorithms over rings share: several rings through the same ranks, each of which carries its part of the
// message.
#pragma once

#include "model/collectives/algorithm.hpp"

namespace foretrain {

/// Reduce-scatter, all-gather or both over weighted rings: every rank's part of the message is cut into as many chunks
/// as the weights add up to, and each ring moves its own.
Schedule rings_reduce_scatter(int ranks, std::vector<ScheduleShape::Ring> rings);
Schedule rings_all_gather(int ranks, std::vector<ScheduleShape::Ring> rings);
Schedule rings_all_reduce(int ranks, std::vector<ScheduleShape::Ring> rings);

/// Chains along the rings, cut open at rank 0: the message leaves it in pieces (broadcast), or reaches it in pieces to
/// which every rank has added its own (reduce).
Schedule chains_broadcast(int ranks, std::vector<ScheduleShape::Ring> rings);
Schedule chains_reduce(int ranks, std::vector<ScheduleShape::Ring> rings);

/// The algorithm over the rings that `rings` names for so many ranks.
template <std::vector<ScheduleShape::Ring> (*rings)(int ranks, const ScheduleShape& shape)>
Algorithm algorithm_over() {
  return {
      .all_reduce = [](int ranks, const ScheduleShape& shape) { return rings_all_reduce(ranks, rings(ranks, shape)); },
      .all_gather = [](int ranks, const ScheduleShape& shape) { return rings_all_gather(ranks, rings(ranks, shape)); },
      .reduce_scatter = [](int ranks,
                           const ScheduleShape& shape) { return rings_reduce_scatter(ranks, rings(ranks, shape)); },
      .broadcast = [](int ranks, const ScheduleShape& shape) { return chains_broadcast(ranks, rings(ranks, shape)); },
      .reduce = [](int ranks, const ScheduleShape& shape) { return chains_reduce(ranks, rings(ranks, shape)); },
      .runs = Algorithm::Runs::rings,
  };
}

/// A range of chunks on its way.
Transfer send(Transfer range, int source, int destination, Transfer::Kind kind);

/// 0, 1, …, ranks - 1.
std::vector<int> natural_order(int ranks);

}  // namespace foretrain

// A binary heap of ranks (parent of r is (r-1)/2): sums travel up level by level, the result travels down. The message
// is not cut, so the time is 2·depth phases in each of which an inner rank's link carries both children's messages.
// Reduce is the way up alone, broadcast the way down.
#include <bit>

#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

int depth_of(int rank) { return static_cast<int>(std::bit_width(static_cast<unsigned>(rank) + 1U)) - 1; }

/// All edges between the ranks of depth `level` and their parents.
Phase edges(int ranks, int level, bool upwards) {
  Phase transfers;
  for (int rank = 1; rank < ranks; ++rank) {
    if (depth_of(rank) != level) continue;
    const int parent = (rank - 1) / 2;
    transfers.push_back(upwards ? Transfer{rank, parent, 0, 1, Transfer::Kind::reduce}
                                : Transfer{parent, rank, 0, 1, Transfer::Kind::copy});
  }
  return transfers;
}

Schedule make(int ranks, int phases, std::function<Phase(int)> phase) {
  return {.ranks = ranks, .phases = phases, .phase = std::move(phase)};
}

}  // namespace

const Algorithm tree_algorithm = {
    .all_reduce =
        [](int ranks, const ScheduleShape& /*shape*/) {
          const int depth = depth_of(ranks - 1);
          return make(ranks, 2 * depth, [=](int index) {
            return index < depth ? edges(ranks, depth - index, true) : edges(ranks, index - depth + 1, false);
          });
        },
    .broadcast =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return make(ranks, depth_of(ranks - 1), [=](int index) { return edges(ranks, index + 1, false); });
        },
    .reduce =
        [](int ranks, const ScheduleShape& /*shape*/) {
          const int depth = depth_of(ranks - 1);
          return make(ranks, depth, [=](int index) { return edges(ranks, depth - index, true); });
        },
};

}  // namespace foretrain

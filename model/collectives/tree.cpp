// A binary heap of ranks (parent of r is (r-1)/2): sums travel up level by level, the result travels down. The message
// is not cut, so the time is 2·depth phases in each of which an inner rank's link carries both children's messages.
#include <bit>

#include "model/collectives/algorithms.hpp"

namespace foretrain {

namespace {
int depth_of(int rank) { return static_cast<int>(std::bit_width(static_cast<unsigned>(rank) + 1U)) - 1; }
}  // namespace

Schedule tree_all_reduce(int ranks, int /*parts*/) {
  const int depth = depth_of(ranks - 1);
  const auto phase = [ranks, depth](int index) {
    const bool upwards = index < depth;
    const int level = upwards ? depth - index : index - depth + 1;  // of the children on the edges used now
    Phase transfers;
    for (int rank = 1; rank < ranks; ++rank) {
      if (depth_of(rank) != level) continue;
      const int parent = (rank - 1) / 2;
      transfers.push_back(upwards ? Transfer{rank, parent, 0, 1, TransferKind::reduce}
                                  : Transfer{parent, rank, 0, 1, TransferKind::copy});
    }
    return transfers;
  };
  return {.ranks = ranks, .phases = 2 * depth, .phase = phase, .run_length = [](int) { return 1; }};
}

}  // namespace foretrain

// A binary heap of ranks (parent of r is (r-1)/2): sums travel up level by level, the result travels down. The message
// is not cut, so the time is 2·depth phases in each of which an inner rank's link carries both children's messages.
// Reduce is the way up alone, broadcast the way down.
#include <bit>

#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

int depth_of(int rank) { return static_cast<int>(std::bit_width(static_cast<unsigned>(rank) + 1U)) - 1; }

/// All edges between the ranks of depth `level` and their parents.
Phase edges(int ranks, int level, Transfer::Kind kind) {
  Phase transfers;
  for (int rank = 1; rank < ranks; ++rank) {
    if (depth_of(rank) != level) continue;
    const int parent = (rank - 1) / 2;
    const bool upwards = kind == Transfer::Kind::reduce;
    transfers.push_back({upwards ? rank : parent, upwards ? parent : rank, 0, 1, kind});
  }
  return transfers;
}

Schedule heap(CollectiveOperation operation, int ranks, const ScheduleShape& /*shape*/) {
  const int depth = depth_of(ranks - 1);
  return reduced_then_copied(operation, ranks, 1,
                             {depth, [=](int index) { return edges(ranks, depth - index, Transfer::Kind::reduce); }},
                             {depth, [=](int index) { return edges(ranks, index + 1, Transfer::Kind::copy); }});
}

}  // namespace

const Algorithm tree_algorithm = {.operations = {all_reduce, broadcast, reduce}, .build = heap};

}  // namespace foretrain

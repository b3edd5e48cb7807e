// Every two ranks exchange what they owe each other, one partner per phase: n-1 phases in which every rank sends one
// part and receives one, so that no port is ever shared. The partner of rank r in phase i is r xor i where the number
// of ranks is a power of two, else r sends to r + i and receives from r - i. Source: Thakur, Rabenseifner, Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005), sections 3.3 and 4.3.
#include <algorithm>
#include <bit>

#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

/// Beyond this many ranks the phases of one power-of-two range of distances count as its last.
constexpr int most_ranks_told_apart = 1024;

int partner(int ranks, int rank, int distance) {
  return std::has_single_bit(static_cast<unsigned>(ranks)) ? rank ^ distance : (rank + distance) % ranks;
}

/// Every rank sends its partner a chunk: the partner's part or its own, or its message to the partner.
template <typename Chunk>
SchedulePart in_pairs(int ranks, Transfer::Kind kind, const Chunk& chunk) {
  const auto phase = [=](int index) {
    Phase transfers;
    transfers.reserve(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      const int other = partner(ranks, rank, index + 1);
      transfers.push_back({rank, other, chunk(rank, other), 1, kind});
    }
    return transfers;
  };
  const auto phase_run = [=](int index) -> Schedule::PhaseRun {
    if (ranks <= most_ranks_told_apart) return {1, index};
    const int distance = index + 1;
    const int end = std::min(static_cast<int>(2U * std::bit_floor(static_cast<unsigned>(distance))), ranks);
    return {end - distance, end - 2};
  };
  return {ranks - 1, phase, -1, phase_run};
}

Schedule pairwise(CollectiveOperation operation, int ranks, const ScheduleShape& /*shape*/) {
  if (operation == all_to_all) {
    const auto message = [=](int rank, int other) { return rank * ranks + other; };
    return joined(ranks, ranks * ranks, {in_pairs(ranks, Transfer::Kind::copy, message)});
  }
  return reduced_then_copied(operation, ranks, ranks,
                             in_pairs(ranks, Transfer::Kind::reduce, [](int, int other) { return other; }),
                             in_pairs(ranks, Transfer::Kind::copy, [](int rank, int) { return rank; }));
}

}  // namespace

const Algorithm pairwise_algorithm = {
    .operations = {all_reduce, all_gather, reduce_scatter, all_to_all},
    .build = pairwise,
};

}  // namespace foretrain

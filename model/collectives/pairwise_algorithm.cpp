// Every two ranks exchange what they owe each other, one partner per phase: n-1 phases in which every rank sends one
// part and receives one, so that no port is ever shared. The partner of rank r in phase i is r xor i where the number
// of ranks is a power of two, else r sends to r + i and receives from r - i. Source: Thakur, Rabenseifner, Gropp,
// "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005), sections 3.3 and 4.3.
#include <algorithm>
#include <bit>

#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

/// Beyond this many ranks the phases of one power-of-two range of distances count as its last.
constexpr int most_ranks_told_apart = 1024;

enum class What { parts_for_partner, own_part, messages };

int partner(int ranks, int rank, int distance) {
  return std::has_single_bit(static_cast<unsigned>(ranks)) ? rank ^ distance : (rank + distance) % ranks;
}

Phase exchange(int ranks, int distance, What what) {
  Phase transfers;
  transfers.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const int other = partner(ranks, rank, distance);
    switch (what) {
      case What::parts_for_partner:
        transfers.push_back({rank, other, other, 1, Transfer::Kind::reduce});
        break;
      case What::own_part:
        transfers.push_back({rank, other, rank, 1, Transfer::Kind::copy});
        break;
      case What::messages:
        transfers.push_back({rank, other, rank * ranks + other, 1, Transfer::Kind::copy});
        break;
    }
  }
  return transfers;
}

Schedule make(int ranks, int chunks, const std::vector<What>& rounds) {
  const int per_round = ranks - 1;
  const auto stretch = [=](int index) -> Schedule::Stretch {
    if (ranks <= most_ranks_told_apart) return {1, index};
    const int distance = index % per_round + 1;
    const int end = std::min(static_cast<int>(2U * std::bit_floor(static_cast<unsigned>(distance))), ranks);
    return {end - distance, index + end - distance - 1};
  };
  return {.ranks = ranks,
          .chunks = chunks,
          .phases = per_round * static_cast<int>(rounds.size()),
          .phase = [=](int index) { return exchange(ranks, index % per_round + 1, rounds[index / per_round]); },
          .stretch = stretch};
}

}  // namespace

const Algorithm pairwise_algorithm = {
    .all_reduce =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return make(ranks, ranks, {What::parts_for_partner, What::own_part});
        },
    .all_gather = [](int ranks, const ScheduleShape& /*shape*/) { return make(ranks, ranks, {What::own_part}); },
    .reduce_scatter = [](int ranks,
                         const ScheduleShape& /*shape*/) { return make(ranks, ranks, {What::parts_for_partner}); },
    .all_to_all = [](int ranks,
                     const ScheduleShape& /*shape*/) { return make(ranks, ranks * ranks, {What::messages}); },
};

}  // namespace foretrain

// Every rank sends everything to rank 0, which adds it up and sends the sum back: 2·(n-1)·S through one rank's link.
// The other operations in the same spirit: a rank that has data sends it straight to the ranks that need it, all in one
// phase.
#include "model/collectives/algorithm.hpp"
#include "model/collectives/exchange.hpp"

namespace foretrain {

namespace {

Phase to_root(int ranks) {
  Phase transfers;
  for (int rank = 1; rank < ranks; ++rank) transfers.push_back({rank, 0, 0, 1, Transfer::Kind::reduce});
  return transfers;
}

Phase from_root(int ranks) {
  Phase transfers;
  for (int rank = 1; rank < ranks; ++rank) transfers.push_back({0, rank, 0, 1, Transfer::Kind::copy});
  return transfers;
}

/// Every rank sends every other rank's part to its owner (reduce), or its own part to everybody (copy).
Phase everybody_to_everybody(int ranks, Transfer::Kind kind) {
  Phase transfers;
  transfers.reserve(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks));
  for (int source = 0; source < ranks; ++source) {
    for (int destination = 0; destination < ranks; ++destination) {
      if (source == destination) continue;
      transfers.push_back({source, destination, kind == Transfer::Kind::reduce ? destination : source, 1, kind});
    }
  }
  return transfers;
}

Schedule make(int ranks, int chunks, int phases, std::function<Phase(int)> phase) {
  return {.ranks = ranks, .chunks = chunks, .phases = ranks > 1 ? phases : 0, .phase = std::move(phase)};
}

}  // namespace

const Algorithm naive_algorithm = {
    .all_reduce =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return make(ranks, 1, 2, [ranks](int index) { return index == 0 ? to_root(ranks) : from_root(ranks); });
        },
    .all_gather =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return make(ranks, ranks, 1, [ranks](int) { return everybody_to_everybody(ranks, Transfer::Kind::copy); });
        },
    .reduce_scatter =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return make(ranks, ranks, 1, [ranks](int) { return everybody_to_everybody(ranks, Transfer::Kind::reduce); });
        },
    .broadcast =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return make(ranks, 1, 1, [ranks](int) { return from_root(ranks); });
        },
    .reduce = [](int ranks,
                 const ScheduleShape& /*shape*/) { return make(ranks, 1, 1, [ranks](int) { return to_root(ranks); }); },
    .all_to_all = direct_all_to_all,
    .send_receive = direct_send_receive,
    .all_to_all_of_many = all_to_all_at_once,
};

}  // namespace foretrain

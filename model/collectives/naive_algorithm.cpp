// Every rank sends everything to rank 0, which adds it up and sends the sum back: 2·(n-1)·S through one rank's link.
// The other operations in the same spirit: a rank that has data sends it straight to the ranks that need it, all in one
// phase.
#include "model/collectives/algorithm.hpp"
#include "model/collectives/exchange.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

Phase with_root(int ranks, Transfer::Kind kind) {
  Phase transfers;
  for (int rank = 1; rank < ranks; ++rank) {
    const bool to_root = kind == Transfer::Kind::reduce;
    transfers.push_back({to_root ? rank : 0, to_root ? 0 : rank, 0, 1, kind});
  }
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

Schedule naive(CollectiveOperation operation, int ranks, const ScheduleShape& /*shape*/) {
  if (is_exchange(operation)) return direct_exchange(operation, ranks);
  const auto phase = has_parts(operation) ? everybody_to_everybody : with_root;
  return reduced_then_copied(operation, ranks, has_parts(operation) ? ranks : 1,
                             {1, [=](int) { return phase(ranks, Transfer::Kind::reduce); }},
                             {1, [=](int) { return phase(ranks, Transfer::Kind::copy); }});
}

}  // namespace

const Algorithm naive_algorithm = {
    .operations = {all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_receive},
    .build = naive,
    .all_to_all_of_many = all_to_all_at_once,
};

}  // namespace foretrain

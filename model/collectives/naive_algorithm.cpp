// Every rank sends everything to rank 0, which adds it up and sends the sum back: 2·(n-1)·S through one rank's link.
// Exchanges in the same spirit: a rank that has data sends it straight to the ranks that need it, all in one phase.
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

Schedule naive(CollectiveOperation operation, int ranks, const ScheduleShape& /*shape*/) {
  if (is_exchange(operation)) return direct_exchange(operation, ranks);
  return reduced_then_copied(operation, ranks, 1, {1, [=](int) { return with_root(ranks, Transfer::Kind::reduce); }},
                             {1, [=](int) { return with_root(ranks, Transfer::Kind::copy); }});
}

}  // namespace

const Algorithm naive_algorithm = {
    .operations = {all_reduce, broadcast, reduce, all_to_all, send_receive},
    .build = naive,
    .all_to_all_of_many = all_to_all_at_once,
};

}  // namespace foretrain

// Everybody sends everything to rank 0, which adds it up and sends the sum back: 2·(n-1)·S through one rank's link.
#include "model/collectives/algorithms.hpp"

namespace foretrain {

Schedule naive_all_reduce(int ranks, int /*parts*/) {
  const auto phase = [ranks](int index) {
    Phase transfers;
    for (int rank = 1; rank < ranks; ++rank) {
      transfers.push_back(index == 0 ? Transfer{rank, 0, 0, 1, TransferKind::reduce}
                                     : Transfer{0, rank, 0, 1, TransferKind::copy});
    }
    return transfers;
  };
  return {.ranks = ranks, .phases = ranks > 1 ? 2 : 0, .phase = phase, .run_length = [](int) { return 1; }};
}

}  // namespace foretrain

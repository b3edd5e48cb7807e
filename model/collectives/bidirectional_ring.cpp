// Two rings over the same ranks in opposite directions, each for half of the message: both directions of every
// full-duplex link are used, and each phase moves half as much per direction as a single ring.
#include "model/collectives/algorithms.hpp"

namespace foretrain {

Schedule bidirectional_ring_all_reduce(int ranks, int /*parts*/) {
  const int phases = 2 * (ranks - 1);
  const auto phase = [ranks](int index) {
    const bool reducing = index < ranks - 1;
    const TransferKind kind = reducing ? TransferKind::reduce : TransferKind::copy;
    const int lag = reducing ? index + 1 : index - (ranks - 1);
    Phase transfers;
    transfers.reserve(2 * static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      const int next = (rank + 1) % ranks;
      const int previous = (rank + ranks - 1) % ranks;
      transfers.push_back({rank, next, (rank + ranks - lag) % ranks, 1, kind});
      transfers.push_back({rank, previous, ranks + (rank + lag) % ranks, 1, kind});
    }
    return transfers;
  };
  return {.ranks = ranks, .chunks = 2 * ranks, .phases = phases, .phase = phase, .run_length = [phases](int index) {
            return phases - index;
          }};
}

}  // namespace foretrain

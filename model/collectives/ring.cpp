// Chunks travel round a ring, one hop per phase. Reduce-scatter: chunk c starts at rank c+1, collects one contribution
// per hop and is complete at rank c. All-gather: each rank passes on what it got last. All-reduce is one after the
// other: 2(n-1) phases of S/n. Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69 (2009).
#include "model/collectives/algorithms.hpp"

namespace foretrain {

namespace {

int modulo(int value, int n) { return ((value % n) + n) % n; }

/// Every rank sends chunk (rank - lag) to its neighbour.
Phase hop(int ranks, int lag, TransferKind kind) {
  Phase transfers;
  transfers.reserve(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    transfers.push_back({rank, (rank + 1) % ranks, modulo(rank - lag, ranks), 1, kind});
  }
  return transfers;
}

Schedule make_ring(int ranks, int phases, std::function<Phase(int)> phase) {
  return {
      .ranks = ranks, .chunks = ranks, .phases = phases, .phase = std::move(phase), .run_length = [phases](int index) {
        return phases - index;
      }};
}

}  // namespace

Schedule ring_reduce_scatter(int ranks, int /*parts*/) {
  return make_ring(ranks, ranks - 1, [ranks](int index) { return hop(ranks, index + 1, TransferKind::reduce); });
}

Schedule ring_all_gather(int ranks, int /*parts*/) {
  return make_ring(ranks, ranks - 1, [ranks](int index) { return hop(ranks, index, TransferKind::copy); });
}

Schedule ring_all_reduce(int ranks, int /*parts*/) {
  return make_ring(ranks, 2 * (ranks - 1), [ranks](int index) {
    return index < ranks - 1 ? hop(ranks, index + 1, TransferKind::reduce)
                             : hop(ranks, index - (ranks - 1), TransferKind::copy);
  });
}

}  // namespace foretrain

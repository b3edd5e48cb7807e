// A chain of ranks through which the message travels in pieces: from rank 0 to the last one (broadcast), or from the
// last one to rank 0, each adding its own (reduce).
#include <algorithm>

#include "model/collectives/algorithms.hpp"

namespace foretrain {

namespace {

/// Pieces per rank: filling the chain then costs at most a quarter of the time that the message itself takes.
constexpr int pieces_per_rank = 4;

/// Hop h of the chain carries piece k in phase h + k.
Schedule make_chain(int ranks, std::function<Transfer(int hop, int piece)> transfer) {
  const int hops = ranks - 1;
  const int pieces = pieces_per_rank * ranks;
  const auto phase = [hops, pieces, transfer](int index) {
    Phase transfers;
    for (int hop = std::max(0, index - pieces + 1); hop < std::min(hops, index + 1); ++hop) {
      transfers.push_back(transfer(hop, index - hop));
    }
    return transfers;
  };
  // All hops are busy from phase hops - 1 until the first hop has sent its last piece.
  const auto run_length = [hops, pieces](int index) { return index >= hops - 1 ? std::max(1, pieces - index) : 1; };
  return {.ranks = ranks,
          .chunks = pieces,
          .phases = hops > 0 ? hops + pieces - 1 : 0,
          .phase = phase,
          .run_length = run_length};
}

}  // namespace

Schedule ring_broadcast(int ranks, int /*parts*/) {
  return make_chain(ranks, [](int hop, int piece) { return Transfer{hop, hop + 1, piece, 1, TransferKind::copy}; });
}

Schedule ring_reduce(int ranks, int /*parts*/) {
  return make_chain(ranks, [ranks](int hop, int piece) {
    return Transfer{ranks - 1 - hop, ranks - 2 - hop, piece, 1, TransferKind::reduce};
  });
}

}  // namespace foretrain

// Recursive halving (reduce-scatter between partners at distance m/2, m/4, …, 1, each step with half of what is left),
// then recursive doubling (all-gather) back. Ranks beyond the largest power of two m first add theirs to a neighbour
// and get the result from it at the end. Source: Thakur, Rabenseifner, Gropp, "Optimization of collective communication
// operations in MPICH", IJHPCA 19 (2005).
#include <bit>

#include "model/collectives/algorithms.hpp"

namespace foretrain {

namespace {

/// Core member v of m; the first `extra` core members are the even ranks of pairs, whose odd ranks stand aside.
int rank_of_member(int member, int extra) { return member < extra ? 2 * member : member + extra; }

/// Members at `distance` exchange halves of the range of 2·distance chunks that they work on.
Phase exchange(int members, int extra, int distance, TransferKind kind) {
  Phase transfers;
  for (int member = 0; member < members; ++member) {
    const int partner = member ^ distance;
    // A member keeps the half of the range in which its own chunk lies: it sends the partner's half to be reduced, and
    // its own half to be copied.
    const int owner = kind == TransferKind::reduce ? partner : member;
    const int first = owner / distance * distance;
    transfers.push_back({rank_of_member(member, extra), rank_of_member(partner, extra), first, distance, kind});
  }
  return transfers;
}

/// Before the core, odd ranks of pairs hand their message to the even ones; after it they get the result.
Phase pair_up(int extra, int chunks, bool before) {
  Phase transfers;
  for (int pair = 0; pair < extra; ++pair) {
    transfers.push_back(before ? Transfer{2 * pair + 1, 2 * pair, 0, chunks, TransferKind::reduce}
                               : Transfer{2 * pair, 2 * pair + 1, 0, chunks, TransferKind::copy});
  }
  return transfers;
}

}  // namespace

Schedule halving_doubling_all_reduce(int ranks, int /*parts*/) {
  const int members = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  const int extra = ranks - members;
  const int steps = std::countr_zero(static_cast<unsigned>(members));
  const int sides = extra > 0 ? 1 : 0;  // a phase before and one after the core
  const int phases = 2 * steps + 2 * sides;
  const auto phase = [=](int index) {
    if (sides == 1 && (index == 0 || index == phases - 1)) {
      return pair_up(extra, members, index == 0);
    }
    const int step = index - sides;
    return step < steps ? exchange(members, extra, members >> (step + 1), TransferKind::reduce)
                        : exchange(members, extra, 1 << (step - steps), TransferKind::copy);
  };
  return {.ranks = ranks, .chunks = members, .phases = phases, .phase = phase, .run_length = [](int) { return 1; }};
}

}  // namespace foretrain

// Recursive halving (reduce-scatter between partners at distance m/2, m/4, …, 1, each step with half of what is left),
// then recursive doubling (all-gather) back. Ranks beyond the largest power of two m first add theirs to a neighbour
// and get the result from it at the end. Reduce-scatter and all-gather are the halves of it. Source: Thakur,
// Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005).
#include <bit>

#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

/// The core of m = 2^k members and the ranks that stand aside: the first `extra` members are the even ranks of pairs,
/// whose odd ranks are served by them.
struct Core {
  Core(int all_ranks, bool parts)
      : ranks(all_ranks),
        members(static_cast<int>(std::bit_floor(static_cast<unsigned>(all_ranks)))),
        chunk_per_rank(parts) {}

  int ranks, members;
  int extra = ranks - members;
  int steps = std::countr_zero(static_cast<unsigned>(members));
  /// Members own one chunk each, or (where every rank owns one) also that of the rank that they serve.
  bool chunk_per_rank;

  [[nodiscard]] int chunks() const { return chunk_per_rank ? ranks : members; }
  [[nodiscard]] int rank_of(int member) const { return member < extra ? 2 * member : member + extra; }
  [[nodiscard]] int first_chunk(int member) const { return chunk_per_rank ? rank_of(member) : member; }
  [[nodiscard]] Transfer move(int from, int to, int first_member, int count, Transfer::Kind kind) const {
    const int first = first_chunk(first_member);
    return {rank_of(from), rank_of(to), first, first_chunk(first_member + count) - first, kind};
  }
};

/// Members at `distance` exchange halves of the range of 2·distance members that they work on. Each keeps the half in
/// which it lies itself, so it sends the partner's half to be reduced, and its own half to be copied.
Phase exchange(const Core& core, int distance, Transfer::Kind kind) {
  Phase transfers;
  for (int member = 0; member < core.members; ++member) {
    const int partner = member ^ distance;
    const int owner = kind == Transfer::Kind::reduce ? partner : member;
    transfers.push_back(core.move(member, partner, owner / distance * distance, distance, kind));
  }
  return transfers;
}

/// The odd ranks of pairs give to the even ones before the core, or get from them after it: their own chunk or all.
Phase pair_up(const Core& core, bool give, bool own) {
  Phase transfers;
  for (int even = 0; even < 2 * core.extra; even += 2) {
    const int from = give ? even + 1 : even, to = give ? even : even + 1;
    const auto kind = give && !own ? Transfer::Kind::reduce : Transfer::Kind::copy;
    transfers.push_back({from, to, own ? even + 1 : 0, own ? 1 : core.chunks(), kind});
  }
  return transfers;
}

Schedule halving_doubling(CollectiveOperation operation, int ranks, const ScheduleShape& /*shape*/) {
  const Core core(ranks, has_parts(operation));
  const auto smaller = [core](int index) { return core.members >> (index + 1); };
  const auto pairs = [&](bool give, bool own) -> SchedulePart {
    return {core.extra > 0 ? 1 : 0, [=](int) { return pair_up(core, give, own); }};
  };
  return joined(ranks, core.chunks(),
                {pairs(true, operation == all_gather),
                 {reduces(operation) ? core.steps : 0,
                  [=](int index) { return exchange(core, smaller(index), Transfer::Kind::reduce); }},
                 {copies(operation) ? core.steps : 0,
                  [=](int index) { return exchange(core, 1 << index, Transfer::Kind::copy); }},
                 pairs(false, operation == reduce_scatter)});
}

}  // namespace

const Algorithm halving_doubling_algorithm = {
    .operations = {all_reduce, all_gather, reduce_scatter},
    .build = halving_doubling,
};

}  // namespace foretrain

// Recursive halving (reduce-scatter between partners at distance m/2, m/4, …, 1, each step with half of what is left),
// then recursive doubling (all-gather) back. Ranks beyond the largest power of two m first add theirs to a neighbour
// and get the result from it at the end. Reduce-scatter and all-gather are the halves of it; broadcast is a scatter
// down a binomial tree and recursive doubling, reduce is recursive halving and a gather up that tree. Source: Thakur,
// Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005).
#include <bit>

#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

/// The core of m = 2^k members and the ranks that stand aside: the first `extra` members are the even ranks of pairs,
/// whose odd ranks are served by them.
struct Core {
  explicit Core(int all_ranks)
      : ranks(all_ranks), members(static_cast<int>(std::bit_floor(static_cast<unsigned>(all_ranks)))) {}

  int ranks, members;
  int extra = ranks - members;
  int steps = std::countr_zero(static_cast<unsigned>(members));
  /// Members own one chunk each, or (where every rank owns one) also that of the rank that they serve.
  bool chunk_per_rank = false;

  [[nodiscard]] int chunks() const { return chunk_per_rank ? ranks : members; }
  [[nodiscard]] int rank_of(int member) const { return member < extra ? 2 * member : member + extra; }
  [[nodiscard]] int first_chunk(int member) const { return chunk_per_rank ? rank_of(member) : member; }
  [[nodiscard]] Transfer move(int from, int to, int first_member, int count, Transfer::Kind kind) const {
    const int first = first_chunk(first_member);
    return {rank_of(from), rank_of(to), first, first_chunk(first_member + count) - first, kind};
  }
};

/// Members at `distance` exchange halves of the range of 2·distance members that they work on: each keeps the half in
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

/// Edges of length `distance` of the binomial tree at member 0: what the upper end and those beyond it own moves.
Phase binomial(const Core& core, int distance, bool away_from_root) {
  Phase transfers;
  for (int member = 0; member < core.members; member += 2 * distance) {
    const int upper = member + distance;
    transfers.push_back(away_from_root ? core.move(member, upper, upper, distance, Transfer::Kind::copy)
                                       : core.move(upper, member, upper, distance, Transfer::Kind::copy));
  }
  return transfers;
}

enum class Pairs { give_all, give_own, get_all, get_own };

/// The odd ranks of pairs give to the even ones before the core, or get from them after it.
Phase pair_up(const Core& core, Pairs what) {
  Phase transfers;
  for (int even = 0; even < 2 * core.extra; even += 2) {
    switch (what) {
      case Pairs::give_all:
        transfers.push_back({even + 1, even, 0, core.chunks(), Transfer::Kind::reduce});
        break;
      case Pairs::give_own:
        transfers.push_back({even + 1, even, even + 1, 1, Transfer::Kind::copy});
        break;
      case Pairs::get_all:
        transfers.push_back({even, even + 1, 0, core.chunks(), Transfer::Kind::copy});
        break;
      case Pairs::get_own:
        transfers.push_back({even, even + 1, even + 1, 1, Transfer::Kind::copy});
        break;
    }
  }
  return transfers;
}

struct Steps {
  explicit Steps(int ranks) : core(ranks) {}
  Core core;
  std::vector<std::function<Phase()>> phases;

  Steps& pairs(Pairs what) {
    if (core.extra > 0) phases.emplace_back([core = core, what] { return pair_up(core, what); });
    return *this;
  }
  Steps& halve() {
    for (int distance = core.members / 2; distance >= 1; distance /= 2) {
      phases.emplace_back([core = core, distance] { return exchange(core, distance, Transfer::Kind::reduce); });
    }
    return *this;
  }
  Steps& double_up() {
    for (int distance = 1; distance < core.members; distance *= 2) {
      phases.emplace_back([core = core, distance] { return exchange(core, distance, Transfer::Kind::copy); });
    }
    return *this;
  }
  Steps& scatter() {
    for (int distance = core.members / 2; distance >= 1; distance /= 2) {
      phases.emplace_back([core = core, distance] { return binomial(core, distance, true); });
    }
    return *this;
  }
  Steps& gather() {
    for (int distance = 1; distance < core.members; distance *= 2) {
      phases.emplace_back([core = core, distance] { return binomial(core, distance, false); });
    }
    return *this;
  }
  [[nodiscard]] Schedule schedule() const {
    return {.ranks = core.ranks,
            .chunks = core.chunks(),
            .phases = static_cast<int>(phases.size()),
            .phase = [all = phases](int index) { return all[static_cast<std::size_t>(index)](); }};
  }
};

Steps with_chunk_per_rank(int ranks) {
  Steps plan(ranks);
  plan.core.chunk_per_rank = true;
  return plan;
}

}  // namespace

const Algorithm halving_doubling_algorithm = {
    .all_reduce =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return Steps(ranks).pairs(Pairs::give_all).halve().double_up().pairs(Pairs::get_all).schedule();
        },
    .all_gather =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return with_chunk_per_rank(ranks).pairs(Pairs::give_own).double_up().pairs(Pairs::get_all).schedule();
        },
    .reduce_scatter =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return with_chunk_per_rank(ranks).pairs(Pairs::give_all).halve().pairs(Pairs::get_own).schedule();
        },
    .broadcast =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return Steps(ranks).scatter().double_up().pairs(Pairs::get_all).schedule();
        },
    .reduce =
        [](int ranks, const ScheduleShape& /*shape*/) {
          return Steps(ranks).pairs(Pairs::give_all).halve().gather().schedule();
        },
};

}  // namespace foretrain

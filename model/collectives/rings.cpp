#include "model/collectives/rings.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

namespace foretrain {

namespace {

/// Pieces per rank: filling the chain then costs at most a quarter of the time that the message itself takes.
constexpr int pieces_per_rank = 4;

struct Rings {
  std::vector<ScheduleShape::Ring> rings;
  std::vector<int> first;  ///< chunk of each ring within a part
  int weight = 0;          ///< all rings' together
};
using SharedRings = std::shared_ptr<const Rings>;

SharedRings share(std::vector<ScheduleShape::Ring> rings) {
  Rings result{std::move(rings), {}, 0};
  for (const ScheduleShape::Ring& ring : result.rings) {
    result.first.push_back(result.weight);
    result.weight += ring.weight;
  }
  return std::make_shared<const Rings>(std::move(result));
}

/// On every ring, the rank at each place passes on the part of the rank `lag` places before it.
Phase hop(const Rings& rings, int ranks, int lag, Transfer::Kind kind) {
  Phase transfers;
  transfers.reserve(rings.rings.size() * static_cast<std::size_t>(ranks));
  for (std::size_t r = 0; r < rings.rings.size(); ++r) {
    const std::vector<int>& order = rings.rings[r].order;
    for (int place = 0; place < ranks; ++place) {
      const int owner = order[(place - lag % ranks + ranks) % ranks];
      transfers.push_back({order[place], order[(place + 1) % ranks], owner * rings.weight + rings.first[r],
                           rings.rings[r].weight, kind});
    }
  }
  return transfers;
}

Schedule over_rings(int ranks, const SharedRings& rings, int phases, std::function<Phase(int)> phase) {
  return {.ranks = ranks,
          .chunks = ranks * rings->weight,
          .phases = phases,
          .phase = std::move(phase),
          .run_length = [phases](int index) { return phases - index; }};
}

/// The ring's order, begun at rank 0.
std::vector<int> from_root(std::vector<int> order) {
  std::rotate(order.begin(), std::find(order.begin(), order.end(), 0), order.end());
  return order;
}

Schedule over_chains(int ranks, std::vector<ScheduleShape::Ring> list, bool towards_root) {
  for (ScheduleShape::Ring& ring : list) {
    ring.order = from_root(std::move(ring.order));
    if (towards_root) std::reverse(ring.order.begin(), ring.order.end());
  }
  const SharedRings rings = share(std::move(list));
  const int hops = ranks - 1;
  const int pieces = pieces_per_rank * ranks;
  const Transfer::Kind kind = towards_root ? Transfer::Kind::reduce : Transfer::Kind::copy;
  const auto phase = [=](int index) {
    Phase transfers;
    for (std::size_t r = 0; r < rings->rings.size(); ++r) {
      const ScheduleShape::Ring& ring = rings->rings[r];
      visit_hops(hops, pieces, index, [&](int hop, int piece) {
        const int first_chunk = pieces * rings->first[r] + piece * ring.weight;
        transfers.push_back({ring.order[hop], ring.order[hop + 1], first_chunk, ring.weight, kind});
      });
    }
    return transfers;
  };
  return joined(ranks, pieces * rings->weight, {pipeline(hops, pieces, phase)});
}

}  // namespace

Transfer send(Transfer range, int source, int destination, Transfer::Kind kind) {
  range.source = source;
  range.destination = destination;
  range.kind = kind;
  return range;
}

std::vector<int> natural_order(int ranks) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Schedule rings_reduce_scatter(int ranks, std::vector<ScheduleShape::Ring> list) {
  const SharedRings rings = share(std::move(list));
  return over_rings(ranks, rings, ranks - 1,
                    [=](int index) { return hop(*rings, ranks, index + 1, Transfer::Kind::reduce); });
}

Schedule rings_all_gather(int ranks, std::vector<ScheduleShape::Ring> list) {
  const SharedRings rings = share(std::move(list));
  return over_rings(ranks, rings, ranks - 1,
                    [=](int index) { return hop(*rings, ranks, index, Transfer::Kind::copy); });
}

Schedule rings_all_reduce(int ranks, std::vector<ScheduleShape::Ring> list) {
  const SharedRings rings = share(std::move(list));
  return over_rings(ranks, rings, 2 * (ranks - 1), [=](int index) {
    return index < ranks - 1 ? hop(*rings, ranks, index + 1, Transfer::Kind::reduce)
                             : hop(*rings, ranks, index - (ranks - 1), Transfer::Kind::copy);
  });
}

Schedule chains_broadcast(int ranks, std::vector<ScheduleShape::Ring> rings) {
  return over_chains(ranks, std::move(rings), false);
}

Schedule chains_reduce(int ranks, std::vector<ScheduleShape::Ring> rings) {
  return over_chains(ranks, std::move(rings), true);
}

}  // namespace foretrain

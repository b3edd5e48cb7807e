// Rings and chains: one, or two in opposite directions, each for half of the message, so that both directions of every
// full-duplex link are used.
//
// Chunks travel round a ring, one hop per phase. Reduce-scatter: chunk c starts at rank c+1, collects one contribution
// per hop and is complete at rank c. All-gather: each rank passes on what it got last. All-reduce is one after the
// other: 2(n-1) phases of S/n. Broadcast and reduce use the ring, cut open at rank 0, as a chain through which the
// message travels in pieces. Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69 (2009).
#include <algorithm>
#include <numeric>

#include "model/base/number.hpp"
#include "model/collectives/algorithm.hpp"
#include "model/collectives/exchange.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;
using Orders = std::vector<std::vector<int>>;  ///< of the ranks, one for each ring

/// Pieces per rank: filling the chain then costs at most a quarter of the time that the message itself takes.
constexpr int pieces_per_rank = 4;

SchedulePart part_of_rings(int ranks, const Orders& rings, Transfer::Kind kind) {
  const auto phase = [=, count = static_cast<int>(rings.size())](int index) {
    Phase transfers;
    for (int ring = 0; ring < count; ++ring) {
      const auto at = [&](int place) { return rings[at_index(ring)][at_index(place)]; };
      append_ring_hop(
          ranks, kind == Transfer::Kind::reduce ? index + 1 : index, kind, at,
          [&](int place) { return Transfer{.first_chunk = at(place) * count + ring}; }, transfers);
    }
    return transfers;
  };
  return {ranks - 1, phase, 0};
}

Schedule over_chains(int ranks, Orders rings, bool towards_root) {
  for (std::vector<int>& order : rings) std::ranges::rotate(order, std::ranges::find(order, 0));
  const int hops = ranks - 1, pieces = pieces_per_rank * ranks, count = static_cast<int>(rings.size());
  const auto phase = [=](int index) {
    Phase transfers;
    for (int ring = 0; ring < count; ++ring) {
      append_chain(
          hops, pieces, index, towards_root, [&](int place) { return rings[at_index(ring)][at_index(place)]; },
          [&](int piece) { return Transfer{.first_chunk = pieces * ring + piece}; }, transfers);
    }
    return transfers;
  };
  return joined(ranks, pieces * count, {pipeline(hops, pieces, phase)});
}

Schedule over_rings(CollectiveOperation operation, int ranks, int count) {
  std::vector<int> order(at_index(ranks));
  std::iota(order.begin(), order.end(), 0);
  Orders rings = {order};
  if (count == 2) rings.emplace_back(order.rbegin(), order.rend());
  if (has_root(operation)) return over_chains(ranks, std::move(rings), operation == reduce);
  return reduced_then_copied(operation, ranks, ranks * count, part_of_rings(ranks, rings, Transfer::Kind::reduce),
                             part_of_rings(ranks, rings, Transfer::Kind::copy));
}

Schedule one_ring(CollectiveOperation operation, int ranks, const ScheduleShape& /*shape*/) {
  return is_exchange(operation) ? direct_exchange(operation, ranks) : over_rings(operation, ranks, 1);
}

Schedule both_ways(CollectiveOperation operation, int ranks, const ScheduleShape& /*shape*/) {
  return over_rings(operation, ranks, 2);
}

}  // namespace

const Algorithm ring_algorithm = {
    .operations = {all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_receive},
    .build = one_ring,
    .order = ring_order,
    .all_to_all_of_many = all_to_all_at_once,
};

const Algorithm bidirectional_ring_algorithm = {
    .operations = {all_reduce, all_gather, reduce_scatter, broadcast, reduce},
    .build = both_ways,
    .order = ring_order,
};

}  // namespace foretrain

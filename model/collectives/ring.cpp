// Chunks travel round a ring, one hop per phase. Reduce-scatter: chunk c starts at rank c+1, collects one contribution
// per hop and is complete at rank c. All-gather: each rank passes on what it got last. All-reduce is one after the
// other: 2(n-1) phases of S/n. Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", JPDC 69 (2009).
// Broadcast and reduce use the ring as a chain through which the message travels in pieces.
#include "model/collectives/algorithms.hpp"
#include "model/collectives/rings.hpp"

namespace foretrain {

namespace {
std::vector<WeightedRing> one_ring(int ranks) { return {{natural_order(ranks), 1}}; }
}  // namespace

Schedule ring_reduce_scatter(int ranks, const ScheduleShape& /*shape*/) {
  return rings_reduce_scatter(ranks, one_ring(ranks));
}
Schedule ring_all_gather(int ranks, const ScheduleShape& /*shape*/) { return rings_all_gather(ranks, one_ring(ranks)); }
Schedule ring_all_reduce(int ranks, const ScheduleShape& /*shape*/) { return rings_all_reduce(ranks, one_ring(ranks)); }
Schedule ring_broadcast(int ranks, const ScheduleShape& /*shape*/) { return chains_broadcast(ranks, one_ring(ranks)); }
Schedule ring_reduce(int ranks, const ScheduleShape& /*shape*/) { return chains_reduce(ranks, one_ring(ranks)); }

}  // namespace foretrain

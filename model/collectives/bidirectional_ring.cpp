// Two rings over the same ranks in opposite directions, each for half of the message: both directions of every
// full-duplex link are used, and each phase moves half as much per direction as a single ring.
#include <algorithm>

#include "model/collectives/algorithms.hpp"
#include "model/collectives/rings.hpp"

namespace foretrain {

namespace {
std::vector<WeightedRing> both_ways(int ranks) {
  std::vector<int> back = natural_order(ranks);
  std::reverse(back.begin(), back.end());
  return {{natural_order(ranks), 1}, {std::move(back), 1}};
}
}  // namespace

Schedule bidirectional_ring_reduce_scatter(int ranks, const ScheduleShape& /*shape*/) {
  return rings_reduce_scatter(ranks, both_ways(ranks));
}
Schedule bidirectional_ring_all_gather(int ranks, const ScheduleShape& /*shape*/) {
  return rings_all_gather(ranks, both_ways(ranks));
}
Schedule bidirectional_ring_all_reduce(int ranks, const ScheduleShape& /*shape*/) {
  return rings_all_reduce(ranks, both_ways(ranks));
}
Schedule bidirectional_ring_broadcast(int ranks, const ScheduleShape& /*shape*/) {
  return chains_broadcast(ranks, both_ways(ranks));
}
Schedule bidirectional_ring_reduce(int ranks, const ScheduleShape& /*shape*/) {
  return chains_reduce(ranks, both_ways(ranks));
}

}  // namespace foretrain

// Two rings over the same ranks in opposite directions, each for half of the message: both directions of every
// full-duplex link are used, and each phase moves half as much per direction as a single ring.
#include <algorithm>

#include "model/collectives/rings.hpp"

namespace foretrain {

namespace {
std::vector<ScheduleShape::Ring> both_ways(int ranks, const ScheduleShape& /*shape*/) {
  std::vector<int> back = natural_order(ranks);
  std::reverse(back.begin(), back.end());
  return {{natural_order(ranks), 1}, {std::move(back), 1}};
}
}  // namespace

const Algorithm bidirectional_ring_algorithm = [] {
  Algorithm rings = algorithm_over<both_ways>();
  rings.order = ring_order;
  return rings;
}();

}  // namespace foretrain

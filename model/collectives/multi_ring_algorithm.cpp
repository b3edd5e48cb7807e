// Several rings at once, each with its share of the message: one through every network card, or one over every set of
// NVLink lanes, so that all of them are busy (multi_rings in placement.hpp lays them over the hardware). The schedule
// is that of one ring, on each ring's share. Source: NCCL's channels; Patarasuk and Yuan for the single ring.
#include <algorithm>

#include "model/collectives/ring_paths.hpp"
#include "model/collectives/rings.hpp"

namespace foretrain {

namespace {

std::vector<ScheduleShape::Ring> rings_of(int ranks, const ScheduleShape& shape) {
  if (!shape.rings.empty()) return shape.rings;
  std::vector<ScheduleShape::Ring> rings;
  for (int ring = 0; ring < shape.parts; ++ring) {
    std::vector<int> order = natural_order(ranks);
    if (ring % 2 == 1) std::reverse(order.begin(), order.end());
    std::rotate(order.begin(), order.begin() + ring % ranks, order.end());
    rings.push_back({std::move(order), ring + 1});
  }
  return rings;
}

}  // namespace

const Algorithm multi_ring_algorithm = [] {
  Algorithm rings = algorithm_over<rings_of>();
  rings.shape = [](const CollectiveCall&, const std::vector<int>& group, const Topology& topology) {
    ScheduleShape shape(1);
    shape.rings = multi_rings(group, topology);
    return shape;
  };
  return rings;
}();

}  // namespace foretrain

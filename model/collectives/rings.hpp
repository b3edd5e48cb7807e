// The rings of the multi-ring algorithm over concrete hardware.
#pragma once

#include <vector>

#include "model/collectives/schedule.hpp"
#include "model/hardware/topology.hpp"

namespace foretrain {

/// Rings through all ranks of a group, as positions in it, in parts of the message that match what their links carry.
/// Inside a node they are node_rings(): one for each set of NVLink lanes and direction. Over several nodes each of
/// those is repeated once for every network card that its ranks use, entering and leaving the nodes through another
/// card each time; where no choice of ranks does that, once for every rank, which loads the cards evenly too.
std::vector<ScheduleShape::Ring> multi_rings(const std::vector<int>& group, const Topology& topology);

}  // namespace foretrain

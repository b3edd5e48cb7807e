// How much of the tokens' copies for several experts has to travel.
#pragma once

#include <vector>

#include "model/hardware/topology.hpp"

namespace foretrain {

/// Share of a full all-to-all that is sent where each token goes to `copies` experts, which are spread evenly over the
/// ranks of `group`: once to each rank that holds one of them; between nodes once to each such node, from which it is
/// handed on inside, beside what crosses the network (DeepEP, HybridEP).
///
/// Of p places, copies chosen at random meet p · (1 − (1 − 1/p)^copies) different ones.
double dispatched_share(int copies, const std::vector<int>& group, const Topology& topology);

}  // namespace foretrain

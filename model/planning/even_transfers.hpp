// Steps that are built without telling the ranks of a stage apart: whether their transfers say what every rank takes.
#pragma once

#include "model/hardware/topology.hpp"
#include "model/training/step/step.hpp"

namespace foretrain {

/// Whether each group of ranks, with all other groups beside it, takes as long as the whole transfer does, for all
/// transfers of gradients and weights. Then no rank takes less, whichever classes the ranks are divided into. False
/// where that is not seen from flows between GPUs.
bool transfers_are_even(const Step& step, const Topology& topology);

}  // namespace foretrain

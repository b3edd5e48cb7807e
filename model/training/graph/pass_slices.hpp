// A pass cut where collectives inside its layers are, as tasks of their own: where these may meet other traffic.
#pragma once

#include <span>
#include <vector>

#include "model/training/step/step.hpp"

namespace foretrain {

/// A part of a pass that ends in collectives inside its layers, or has some beside it.
struct PassSlice {
  Seconds work;
  std::span<const int> transfers;  ///< of the pass's calls, one after the other
  bool beside = false;             ///< they start with the work, and the next slice waits for both; else they follow it
};

/// A pass in slices; none where it has no layers. Collectives between kernels are evenly spread over a layer's
/// pass. The work of slices that nothing is beside is scaled so that all adds up to the pass's. Those that hide a
/// collective hide as much of it as its price says. Where all hide something, all are scaled. The last slice is what
/// the pass's dispatch and its copies take longer.
std::vector<PassSlice> slices_of(const PassCost& pass_cost);

}  // namespace foretrain

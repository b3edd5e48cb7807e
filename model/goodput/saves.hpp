// How often a training is saved.
#pragma once

#include <algorithm>
#include <cmath>

namespace foretrain {

/// Checkpoints in this many steps, one after every `every` of them and none at the very end; 0: none at all.
inline double saves_before_end(double steps, int every) {
  return every == 0 ? 0.0 : std::max(std::ceil(steps / every - 1e-9) - 1.0, 0.0);
}

}  // namespace foretrain

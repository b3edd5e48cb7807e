// Which ranks are late, and whom they delay.
#pragma once

#include <string>
#include <vector>

#include "model/graph/execution.hpp"

namespace foretrain {

/// What the kernels of one class of ranks wait until another has done its part: of a collective of both, or of what it
/// sends. The transfer's own time is not in it.
struct Wait {
  std::string late, waiting;  ///< "stage 1", "stage 0, rank 4": as their compute streams are called
  Seconds time;               ///< of all its waits together
};

/// The longest first. Who is late because somebody else is, is late here, too: each wait is told of its last cause.
std::vector<Wait> waits_of(const TaskGraph& graph, const Execution& execution);

}  // namespace foretrain

// This machine's description, as the operating system tells it.
#pragma once

#include "model/hardware/cluster.hpp"

namespace foretrain {

/// A node of one processor with one process in the accelerator's place, which every prediction about the host accepts.
Node detect_node();

}  // namespace foretrain

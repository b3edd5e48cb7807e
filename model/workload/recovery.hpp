// Recovery of a training after a failure.
#pragma once

#include <optional>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/quantity.hpp"

namespace foretrain {

struct Recovery {
  /// Recovery of a parameter server's state: another server holds it as well, or it is read from a checkpoint.
  enum class Servers { checkpointed, replicated };

  Seconds heartbeat;          ///< between signs of life
  int missed = 3;             ///< so many heartbeats must fail to appear before a process counts as dead
  Seconds start;              ///< all processes start, until they look for each other
  Seconds initialise;         ///< communicators between all GPUs
  std::optional<int> spares;  ///< machines that wait for a failure; nothing: there is always one
  Seconds repair;             ///< until a machine is back, as a spare; a switch's replacement
  Servers servers = Servers::checkpointed;
  std::vector<Constant> constants;
};

}  // namespace foretrain

// What is wrong with a network, for whoever knows where it was written.
#pragma once

#include <string>

namespace foretrain {

struct NetworkProblem {
  std::string key;       ///< dotted, below what was checked: "mtu", "network.fabric.dimensions", "faults[0].card"
  std::string text;      ///< what is wrong
  std::string expected;  ///< what would be right
};

}  // namespace foretrain

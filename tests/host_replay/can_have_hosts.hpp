// Whether hosts can be had here: as root alone. Tests that need them say why they are skipped.
#pragma once

#include <iostream>

#include "validate/host_replay/replay.hpp"

namespace foretrain {

inline bool can_have_hosts() {
  static const std::string why = why_no_namespaces();
  if (!why.empty()) std::cerr << "skipped: " << why << "\n";
  return why.empty();
}

}  // namespace foretrain

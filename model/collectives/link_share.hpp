// Groups that carry out the same collective side by side, each when it is ready: how much they hold each other up.
#pragma once

#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// What one of them takes beside the others; each shares links with those that move while it does.
struct LinkShare {
  struct Meeting {
    int number = 0;
    Seconds longer;  ///< by its load on the link that is busiest where all move
  };

  int among = -1;    ///< those with the same number may meet; −1: none are met
  int number = 0;    ///< its own among these
  Seconds latency;   ///< until something moves
  Seconds together;  ///< duration while all others move, latency included
  std::vector<Meeting> meetings = {};

  [[nodiscard]] bool shares() const { return among >= 0; }
  LinkShare& operator*=(double factor) {
    latency *= factor;
    together *= factor;
    for (Meeting& meeting : meetings) meeting.longer *= factor;
    return *this;
  }
};

}  // namespace foretrain

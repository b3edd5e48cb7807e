// Groups that carry out the same collective side by side, each when it is ready: how much they hold each other up.
#pragma once

#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// Time of one of them beside the others; each shares links with those that move while it does.
struct LinkShare {
  struct Meeting {
    int number = 0;
    Seconds longer;  ///< by its load on the link that is busiest where all move
  };

  int transfer = -1;    ///< parts with the same number belong to one transfer; −1: a whole transfer
  int among = -1;       ///< those with the same number may meet
  int number = 0;       ///< its own among these
  bool shares = false;  ///< whether it or another of its transfer meets any
  Seconds latency;      ///< until something moves
  Seconds together;     ///< duration while all others move, latency included
  std::vector<Meeting> meetings = {};

  LinkShare& operator*=(double factor) {
    latency *= factor;
    together *= factor;
    for (Meeting& meeting : meetings) meeting.longer *= factor;
    return *this;
  }
};

}  // namespace foretrain

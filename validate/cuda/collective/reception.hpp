// How rank 0 receives the other processes of its run. Anyone can find its port: callers without the token are sent
// away, and neither silent ones nor many of them delay those who have it.
#pragma once

#include <vector>

#include "validate/cuda/collective/greeting.hpp"
#include "validate/cuda/collective/tcp_socket.hpp"

namespace foretrain::gpu {

struct Reception {
  std::vector<Descriptor> others;  ///< of ranks 1, 2, …; those that did not come are not open
  int missing = 0;
  int strangers = 0;  ///< callers that were sent away
};

/// Until all of `size` processes are here, or the deadline. Throws WorldError for processes with the token that do not
/// belong together: of another size, or two of one rank.
Reception receive_others(const std::vector<Descriptor>& listeners, int size, const Token& token, double deadline);

}  // namespace foretrain::gpu

// Cyclic orders of GPUs.
#pragma once

#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// The largest number of vertices widest_cycle searches: its table holds 2^n entries.
inline constexpr int widest_cycle_limit = 16;

/// The Hamiltonian cycle whose narrowest hop is as wide as possible; `capacity[i][j]` is what the hop i → j carries, 0
/// where there is none. Among equally wide cycles the lexicographically first, starting at vertex 0. Empty when there
/// is no cycle. Bellman–Held–Karp on reachability, once per distinct capacity: O(2^n · n²) bit operations. Throws
/// InternalError for more than widest_cycle_limit vertices.
std::vector<int> widest_cycle(const std::vector<std::vector<BytesPerSecond>>& capacity);

}  // namespace foretrain

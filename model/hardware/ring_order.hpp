// Cyclic orders of GPUs.
#pragma once

#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// The largest number of vertices that are searched: tables hold 2^n rows.
inline constexpr std::size_t widest_cycle_limit = 16;

/// The Hamiltonian cycle of least total length, the lexicographically first of equals, starting at vertex 0; `length`
/// is infinite where no hop is. Empty when there is no cycle. Bellman–Held–Karp: O(2^n · n²). Throws InternalError for
/// more than widest_cycle_limit vertices.
std::vector<int> shortest_cycle(const std::vector<std::vector<double>>& length);

/// The same whose narrowest hop is as wide as possible; `capacity[i][j]` is what the hop i → j carries, 0 where there
/// is none.
std::vector<int> widest_cycle(const std::vector<std::vector<BytesPerSecond>>& capacity);

}  // namespace foretrain

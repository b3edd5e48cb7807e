// Ranks of the collectives in these tests.
#pragma once

#include <numeric>
#include <vector>

namespace foretrain::test_nodes {

/// first, first + 1, …
inline std::vector<int> iota(int count, int first = 0) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

}  // namespace foretrain::test_nodes

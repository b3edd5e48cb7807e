// Random choices that tests of whole scenarios share.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace foretrain::test {

using Random = std::mt19937;

template <typename T>
T one_of(Random& random, std::initializer_list<T> choices) {
  return *(choices.begin() + random() % choices.size());
}

/// A whole number from 0 to below `end`.
inline int below(Random& random, int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); }

inline bool one_in(Random& random, int times) { return below(random, times) == 0; }

/// Any order of the parallel dimensions.
inline std::string random_order(Random& random) {
  std::vector<std::string> words = {"tensor", "context", "expert", "data", "pipeline"};
  std::ranges::shuffle(words, random);
  return fmt::format("{}", fmt::join(words, "-"));
}

/// `nodes` of a cluster's `of`, in any order.
inline std::string random_placement(Random& random, int nodes, int of) {
  std::vector<int> all(static_cast<std::size_t>(of));
  std::iota(all.begin(), all.end(), 0);
  std::ranges::shuffle(all, random);
  return fmt::format("[{}]", fmt::join(all.begin(), all.begin() + nodes, ", "));
}

}  // namespace foretrain::test

// Rates at which routes have been found to move together: training repeats itself, micro-batch by micro-batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/base/hash.hpp"
#include "sim/link_sharing.hpp"

namespace foretrain {

/// A route over which so many flows move, and the rate of each.
struct RouteRate {
  RouteIndex route = 0;
  int flows = 1;
  BytesPerSecond rate = {};

  [[nodiscard]] std::uint64_t hash() const {
    return summable_hash(static_cast<std::uint64_t>(route) | static_cast<std::uint64_t>(flows) << 32U);
  }
};

class KnownRates {
 public:
  using Pattern = std::vector<RouteRate>;

  /// Those of as many routes with this sum of hashes, all of which `moves(route)` finds moving; null where there are
  /// none. Valid until the next add().
  template <typename Moves>
  [[nodiscard]] const Pattern* find(std::uint64_t hash, std::size_t routes, const Moves& moves) const {
    const auto [begin, end] = patterns_.equal_range(hash);
    for (auto known = begin; known != end; ++known) {
      const Pattern& pattern = known->second;
      bool same = pattern.size() == routes;
      for (std::size_t i = 0; same && i < routes; ++i) same = moves(pattern[i]);
      if (same) return &pattern;
    }
    return nullptr;
  }

  /// Beyond so many routes nothing more is remembered.
  const Pattern& add(std::uint64_t hash, Pattern pattern) {
    constexpr std::size_t most_routes = 8'000'000;  // 128 MB
    if (remembered_ + pattern.size() > most_routes) return last_ = std::move(pattern);
    remembered_ += pattern.size();
    return patterns_.emplace(hash, std::move(pattern))->second;
  }

 private:
  std::unordered_multimap<std::uint64_t, Pattern> patterns_;
  std::size_t remembered_ = 0;
  Pattern last_;
};

}  // namespace foretrain

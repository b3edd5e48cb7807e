#include "validate/cuda/collective/design.hpp"

#include <algorithm>
#include <map>

#include "model/base/words.hpp"
#include "validate/cuda/collective/ladder.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::uint64_t least_bytes = 8;
constexpr std::uint64_t most_bytes = 1ULL << 32;

}  // namespace

std::vector<CollectivePoint> collective_points(int all, bool quick) {
  std::vector<CollectivePoint> points;
  for (const int ranks : rank_counts(all)) {
    if (quick && ranks != all && ranks != 2) continue;
    for (const CollectiveOperation operation : operations()) {
      for (const std::uint64_t bytes : size_ladder(least_bytes, most_bytes, quick ? 32 : 4)) {
        const Extent extent = extent_of(operation, ranks, bytes / 4);
        if (extent.total > 0) points.push_back({operation, ranks, extent});
      }
    }
  }
  return points;
}

Record record_of(const CollectivePoint& point) {
  const std::string word(name(point.operation));
  const std::string size = std::to_string(point.bytes()) + " B";
  const std::string ranks = std::to_string(point.ranks);
  Record record;
  record.name = word + " size=" + size + " ranks=" + ranks;
  record.scenario = {{"workload.collective.operation", word},
                     {"workload.collective.size", size},
                     {"workload.collective.ranks", ranks}};
  record.unit = "s";
  return record;
}

Spread spread_of(int ranks, const std::vector<std::string>& hosts) {
  std::map<std::string, int> on;
  for (int rank = 0; rank < ranks; ++rank) ++on[hosts.at(static_cast<std::size_t>(rank))];
  Spread spread{static_cast<int>(on.size()), 0};
  for (const auto& [host, count] : on) spread.ranks_per_node = std::max(spread.ranks_per_node, count);
  return spread;
}

}  // namespace foretrain::gpu

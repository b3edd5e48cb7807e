#include "validate/cuda/collective/design.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "model/base/words.hpp"
#include "validate/cuda/collective/ladder.hpp"
#include "validate/measure/turns.hpp"

namespace foretrain::gpu {

namespace {

constexpr std::uint64_t least_bytes = 8;
constexpr std::uint64_t most_bytes = 1ULL << 32;

/// How much steps rest on an operation: data and tensor parallelism and ZeRO on the first three, experts and pipelines
/// on the next two; an assumption.
double value_of(CollectiveOperation operation) {
  switch (operation) {
    case CollectiveOperation::all_reduce:
    case CollectiveOperation::all_gather:
    case CollectiveOperation::reduce_scatter:
      return 4.0;
    case CollectiveOperation::all_to_all:
    case CollectiveOperation::send_receive:
      return 2.0;
    default:
      return 1.0;
  }
}

/// Buckets, layers' activations and shards are of a megabyte to a gigabyte.
double value_of(std::uint64_t bytes) { return bytes >= 1 << 20 && bytes <= 1 << 30 ? 2.0 : 1.0; }

}  // namespace

std::vector<CollectivePoint> collective_points(int all, bool quick) {
  std::vector<CollectivePoint> points;
  for (const int ranks : rank_counts(all)) {
    if (quick && ranks != all && ranks != 2) continue;
    std::vector<std::pair<double, CollectivePoint>> turns;  // communicators are made once for each number of ranks
    for (const CollectiveOperation operation : operations()) {
      for (const std::uint64_t bytes : size_ladder(least_bytes, most_bytes, quick ? 32 : 4)) {
        const Extent extent = extent_of(operation, ranks, bytes / 4);
        const CollectivePoint point{operation, ranks, extent};
        if (extent.total == 0) continue;
        turns.emplace_back(turn_of(record_of(point).name, value_of(operation) * value_of(point.bytes())), point);
      }
    }
    std::ranges::stable_sort(turns, {}, &std::pair<double, CollectivePoint>::first);
    for (const auto& [turn, point] : turns) points.push_back(point);
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

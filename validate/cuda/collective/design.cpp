#include "validate/cuda/collective/design.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "model/base/words.hpp"
#include "validate/measure/sampling.hpp"

namespace foretrain::gpu {

namespace {

/// An operation, and how much steps rest on it: data and tensor parallelism and ZeRO on the first three, experts and
/// pipelines on the next two; an assumption.
struct OperationRow {
  CollectiveOperation operation;
  double value;
  bool divides = false;  ///< its buffer among the ranks
};
constexpr OperationRow operations[] = {{CollectiveOperation::all_reduce, 4.0},
                                       {CollectiveOperation::all_gather, 4.0, true},
                                       {CollectiveOperation::reduce_scatter, 4.0, true},
                                       {CollectiveOperation::all_to_all, 2.0, true},
                                       {CollectiveOperation::send_receive, 2.0},
                                       {CollectiveOperation::broadcast, 1.0},
                                       {CollectiveOperation::reduce, 1.0}};

/// Buckets, layers' activations and shards are of a megabyte to a gigabyte.
double value_of(std::uint64_t bytes) { return bytes >= 1 << 20 && bytes <= 1 << 30 ? 2.0 : 1.0; }

/// Those of one number of ranks, for which communicators are made once, in the order of their turns.
void add_points(int ranks, unsigned factor, std::vector<CollectivePoint>& points) {
  constexpr std::uint64_t least_bytes = 8, most_bytes = 1ULL << 32;
  std::vector<std::pair<double, CollectivePoint>> turns;
  for (const OperationRow& row : operations) {
    for (std::uint64_t bytes = least_bytes, last = 0; last < most_bytes; last = bytes, bytes *= factor) {
      bytes = std::min(bytes, most_bytes);
      const std::uint64_t unit = row.divides ? static_cast<std::uint64_t>(ranks) : 1;
      const CollectivePoint point{row.operation, ranks, bytes / 4 / unit * unit};
      if (point.elements == 0) continue;
      turns.emplace_back(turn_of(record_of(point).name, row.value * value_of(point.bytes())), point);
    }
  }
  std::ranges::stable_sort(turns, {}, &std::pair<double, CollectivePoint>::first);
  for (const auto& [turn, point] : turns) points.push_back(point);
}

}  // namespace

std::vector<CollectivePoint> collective_points(int all, bool quick) {
  std::vector<CollectivePoint> points;
  const unsigned factor = quick ? 32 : 4;
  if (all > 1) add_points(all, factor, points);
  for (int ranks = 2; ranks < all && (!quick || ranks == 2); ranks *= 2) add_points(ranks, factor, points);
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

Spread spread_of(int ranks, const std::vector<std::string>& machines) {
  std::map<std::string, int> on;
  for (int rank = 0; rank < ranks; ++rank) ++on[machines.at(static_cast<std::size_t>(rank))];
  Spread spread{static_cast<int>(on.size()), 0};
  for (const auto& [machine, count] : on) spread.ranks_per_node = std::max(spread.ranks_per_node, count);
  return spread;
}

}  // namespace foretrain::gpu

#include "validate/cuda/collective/design.hpp"

#include <algorithm>
#include <map>

#include "model/base/hash.hpp"
#include "model/base/words.hpp"

namespace foretrain::gpu {

namespace {

struct OperationRow {
  CollectiveOperation operation;
  bool divides = false;  ///< its buffer among the ranks
};
constexpr OperationRow operations[] = {{CollectiveOperation::all_reduce},
                                       {CollectiveOperation::all_gather, true},
                                       {CollectiveOperation::reduce_scatter, true},
                                       {CollectiveOperation::all_to_all, true},
                                       {CollectiveOperation::send_receive},
                                       {CollectiveOperation::broadcast},
                                       {CollectiveOperation::reduce}};

/// Those of one number of ranks, for which communicators are made once; in an order of chance that is always the same,
/// so that there is something of everything where the time is up.
void add_points(int ranks, unsigned factor, std::vector<CollectivePoint>& points) {
  constexpr std::uint64_t least_bytes = 8, most_bytes = 1ULL << 32;
  const auto first = static_cast<std::ptrdiff_t>(points.size());
  for (const OperationRow& row : operations) {
    for (std::uint64_t bytes = least_bytes, last = 0; last < most_bytes; last = bytes, bytes *= factor) {
      bytes = std::min(bytes, most_bytes);
      const std::uint64_t unit = row.divides ? static_cast<std::uint64_t>(ranks) : 1;
      const CollectivePoint point{row.operation, ranks, bytes / 4 / unit * unit};
      if (point.elements > 0) points.push_back(point);
    }
  }
  std::ranges::sort(points.begin() + first, points.end(), {},
                    [](const CollectivePoint& point) { return fnv_1a(record_of(point).name) >> 32; });
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

// Rings in levels (GPU pair or socket, node, group of nodes, …): reduce-scatter inside each group of the lowest level,
// the same among the ranks of equal place one level up (each for its share, all NICs at once), …, all-reduce
// at the top, and all-gathers back down. With l ranks a node and m nodes, per rank 2(l-1)/l·S stays inside the node and
// only 2(m-1)/(m·l)·S leaves it. Ranks are numbered group by group. All-to-all first hands every message to the rank of
// its own group that has the destination's place, then all ranks of one place exchange (NCCL's PXN, "rail-optimised";
// Bruck et al., IEEE TPDS 8 (1997), for the idea of combining). Source: Cho et al., "BlueConnect", MLSys 2019.
#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/collectives/algorithm.hpp"
#include "model/collectives/exchange.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

/// One level: ranks whose numbers differ by multiples of `stride` form rings of `size`.
struct Axis {
  int size = 1, stride = 1;
  [[nodiscard]] int place(int rank) const { return rank / stride % size; }
  [[nodiscard]] int rank_at(int rank, int new_place) const { return rank + (new_place - place(rank)) * stride; }
};

struct Levels {
  int ranks = 1;
  std::vector<Axis> axes;  ///< the top level last

  /// Chunks of the shares that `rank` has been left with below `level` and whose owners have `place` there. Where ranks
  /// own given parts of the message these are `stride` apart; else shares are numbered so that each is one piece.
  [[nodiscard]] Transfer block(int rank, std::size_t level, int place, bool owned) const {
    const Axis& axis = axes[level];
    Transfer range;
    range.chunks = ranks / (axis.stride * axis.size);
    if (owned) {
      range.first_chunk = rank % axis.stride + place * axis.stride;
      range.stride = axis.stride * axis.size;
      return range;
    }
    for (std::size_t below = 0; below < level; ++below) {
      range.first_chunk += axes[below].place(rank) * (ranks / (axes[below].stride * axes[below].size));
    }
    range.first_chunk += place * range.chunks;
    return range;
  }
};

Levels make_levels(int ranks, const ScheduleShape& shape) {
  Levels levels{ranks, {}};
  int inside = 1;
  const std::vector<int>& sizes = shape.levels.empty() ? std::vector<int>{shape.parts} : shape.levels;
  for (const int size : sizes) {
    if (size < 1 || ranks % inside != 0 || ranks / inside % size != 0) {
      throw ImpossiblePlan(
          fmt::format("hierarchical: {} ranks cannot be cut into groups of {}; every level's groups must be equal, so "
                      "the product of the levels must divide the number of ranks",
                      ranks, fmt::join(sizes, " x ")));
    }
    levels.axes.push_back({size, inside});
    inside *= size;
  }
  levels.axes.push_back({ranks / inside, inside});
  return levels;
}

/// One hop along the rings of a level: every rank passes on the block of the place `lag` before its own.
Phase hop(const Levels& levels, std::size_t level, int lag, Transfer::Kind kind, bool owned) {
  const Axis& axis = levels.axes[level];
  Phase transfers;
  transfers.reserve(static_cast<std::size_t>(levels.ranks));
  for (int rank = 0; rank < levels.ranks; ++rank) {
    const int place = axis.place(rank);
    const int next = axis.rank_at(rank, (place + 1) % axis.size);
    const int block = (place - lag % axis.size + axis.size) % axis.size;
    transfers.push_back(sent(levels.block(rank, level, block, owned), rank, next, kind));
  }
  return transfers;
}

SchedulePart ring_part(const Levels& levels, std::size_t level, Transfer::Kind kind, bool owned) {
  const int first_lag = kind == Transfer::Kind::reduce ? 1 : 0;
  return {levels.axes[level].size - 1, [=](int index) { return hop(levels, level, index + first_lag, kind, owned); },
          static_cast<int>(level)};
}

/// Shares are added up from the lowest level upwards, or handed out from the top, or both. Who does one of these alone
/// has parts of the message that are given.
Schedule in_levels(int ranks, const ScheduleShape& shape, bool reduces, bool copies) {
  const Levels levels = make_levels(ranks, shape);
  const bool owned = !(reduces && copies);
  std::vector<SchedulePart> parts;
  for (std::size_t level = 0; reduces && level < levels.axes.size(); ++level) {
    parts.push_back(ring_part(levels, level, Transfer::Kind::reduce, owned));
  }
  for (std::size_t level = levels.axes.size(); copies && level-- > 0;) {
    parts.push_back(ring_part(levels, level, Transfer::Kind::copy, owned));
  }
  return joined(ranks, ranks, std::move(parts));
}

std::vector<int> levels_of(const CollectiveCall& call, const std::vector<int>& group, const Topology& topology) {
  const int per_node = equal_ranks_per_node(call, group, topology);
  if (call.levels.empty()) return {per_node};
  std::int64_t together = 1;
  for (const int level : call.levels) {
    together *= level;
    if (per_node % together != 0 && together % per_node != 0) {
      throw ImpossiblePlan(
          fmt::format("levels {}: groups of {} ranks cut through nodes of {}; sizes must multiply to a divisor or a "
                      "multiple of the ranks of a node, for example [{}]",
                      fmt::join(call.levels, " x "), together, per_node, per_node));
    }
    if (together > static_cast<std::int64_t>(group.size()) || static_cast<std::int64_t>(group.size()) % together != 0) {
      throw ImpossiblePlan(fmt::format(
          "levels {}: {} ranks cannot be cut into groups of {}; the product of the levels must divide the ranks",
          fmt::join(call.levels, " x "), group.size(), together));
    }
  }
  return call.levels;
}

ScheduleShape hierarchical_shape(const CollectiveCall& call, const std::vector<int>& group, const Topology& topology) {
  ScheduleShape shape(1);
  shape.levels = levels_of(call, group, topology);
  return shape;
}

/// Node by node; groups of the innermost level are neighbours, and in ring order.
std::vector<int> level_order(const std::vector<int>& group, int innermost, RingOrders& orders) {
  std::vector<int> result;
  for (std::vector<int>& ranks : split_by_node(group, orders.topology())) {
    std::sort(ranks.begin(), ranks.end());
    const auto all = static_cast<std::ptrdiff_t>(ranks.size());
    const std::ptrdiff_t size = std::min<std::ptrdiff_t>(innermost, all);
    for (std::ptrdiff_t first = 0; first < all; first += size) {
      const std::ptrdiff_t end = std::min(all, first + size);
      const std::vector<int> inner = orders.order({ranks.begin() + first, ranks.begin() + end});
      result.insert(result.end(), inner.begin(), inner.end());
    }
  }
  return result;
}

std::vector<int> hierarchical_order(const CollectiveCall& call, const std::vector<int>& group, RingOrders& orders) {
  if (call.operation == all_to_all) {
    std::vector<int> by_node;
    for (const std::vector<int>& ranks : split_by_node(group, orders.topology())) {
      by_node.insert(by_node.end(), ranks.begin(), ranks.end());
    }
    return by_node;
  }
  return call.levels.empty() ? orders.order(group) : level_order(group, call.levels.front(), orders);
}

/// Inside the groups, then among equal places. The message from s to d is chunk s·n + d.
Schedule in_two_hops(int ranks, const ScheduleShape& shape) {
  const Axis top = make_levels(ranks, shape).axes.back();
  const int locals = top.stride, groups = top.size;
  const auto inside = [=](int) {
    Phase transfers;
    for (int source = 0; source < ranks; ++source) {
      const int base = source / locals * locals;
      for (int place = 0; place < locals; ++place) {
        if (base + place == source) continue;
        transfers.push_back({source, base + place, source * ranks + place, groups, Transfer::Kind::copy, locals});
      }
    }
    return transfers;
  };
  const auto across = [=](int) {
    Phase transfers;
    for (int source = 0; source < ranks; ++source) {
      const int base = source / locals * locals;
      for (int destination = source % locals; destination < ranks; destination += locals) {
        if (destination == source) continue;
        transfers.push_back({source, destination, base * ranks + destination, locals, Transfer::Kind::copy, ranks});
      }
    }
    return transfers;
  };
  return joined(ranks, ranks * ranks, {{locals > 1 ? 1 : 0, inside}, {groups > 1 ? 1 : 0, across}});
}

Schedule hierarchical(CollectiveOperation operation, int ranks, const ScheduleShape& shape) {
  if (operation == all_to_all) return in_two_hops(ranks, shape);
  return in_levels(ranks, shape, reduces(operation), copies(operation));
}

}  // namespace

const Algorithm hierarchical_algorithm = {
    .operations = {all_reduce, all_gather, reduce_scatter, all_to_all},
    .build = hierarchical,
    .shape = hierarchical_shape,
    .order = hierarchical_order,
    .all_to_all_of_many = all_to_all_by_node,
};

}  // namespace foretrain

#include "model/hardware/ring_order.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>

#include "model/base/error.hpp"
#include "model/base/number.hpp"

namespace foretrain {
namespace {

using Set = std::uint32_t;  // bit v: vertex v

constexpr Set bit(int vertex) { return Set{1} << vertex; }

/// The lexicographically first Hamiltonian cycle from vertex 0 along `next` (next[v]: where v leads); empty if none.
std::vector<int> first_cycle(const std::vector<Set>& next) {
  const int count = static_cast<int>(next.size());
  const Set all = (Set{1} << count) - 1;
  // closes[visited]: the vertices v such that a walk that has visited this set and stands on v can be completed.
  std::vector<Set> closes(at_index(all) + 1, 0);
  for (Set visited = all; visited > 0; --visited) {
    if ((visited & 1) == 0) continue;  // every walk starts at vertex 0
    for (Set rest = visited; rest != 0; rest &= rest - 1) {
      const int at = std::countr_zero(rest);
      const Set leads_to = next[at_index(at)];
      bool can_close = visited == all && (leads_to & 1) != 0;
      for (Set open = leads_to & ~visited; open != 0 && !can_close; open &= open - 1) {
        const int step = std::countr_zero(open);
        can_close = (closes[visited | bit(step)] & bit(step)) != 0;
      }
      if (can_close) closes[visited] |= bit(at);
    }
  }
  if ((closes[1] & 1) == 0) return {};
  std::vector<int> cycle = {0};
  Set visited = 1;
  while (visited != all) {
    Set open = next[at_index(cycle.back())] & ~visited;
    while ((closes[visited | bit(std::countr_zero(open))] & bit(std::countr_zero(open))) == 0) open &= open - 1;
    cycle.push_back(std::countr_zero(open));
    visited |= bit(cycle.back());
  }
  return cycle;
}

}  // namespace

std::vector<int> widest_cycle(const std::vector<std::vector<BytesPerSecond>>& capacity) {
  const int count = static_cast<int>(capacity.size());
  if (count > widest_cycle_limit) throw InternalError("widest_cycle: too many vertices");
  if (count == 0) return {};

  std::vector<BytesPerSecond> widths;
  for (const auto& row : capacity) {
    for (const BytesPerSecond width : row) {
      if (width.value() > 0.0) widths.push_back(width);
    }
  }
  std::sort(widths.begin(), widths.end(), std::greater<>{});
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());

  for (const BytesPerSecond narrowest : widths) {
    std::vector<Set> next(capacity.size(), 0);
    for (int from = 0; from < count; ++from) {
      for (int to = 0; to < count; ++to) {
        if (from != to && capacity[at_index(from)][at_index(to)] >= narrowest) {
          next[at_index(from)] |= bit(to);
        }
      }
    }
    std::vector<int> cycle = first_cycle(next);
    if (!cycle.empty()) return cycle;
  }
  return {};
}

}  // namespace foretrain

#include "model/hardware/ring_order.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>

#include "model/base/error.hpp"
#include "model/base/number.hpp"

namespace foretrain {

std::vector<int> shortest_cycle(const std::vector<std::vector<double>>& length) {
  constexpr double none = std::numeric_limits<double>::infinity();
  const std::size_t count = length.size();
  if (count > widest_cycle_limit) throw InternalError("a cycle through too many vertices");
  if (count == 0) return {};
  const std::uint32_t all = (1U << count) - 1U;
  // rest[visited][at]: the shortest way from `at` over all others that are not visited back to vertex 0.
  std::vector<double> rest((all + 1U) * count, none);
  const auto way_by = [&](std::uint32_t visited, std::size_t at, std::size_t to) {
    const bool open = (visited >> to & 1U) == 0;
    return open ? length[at][to] + rest[(visited | 1U << to) * count + to] : none;
  };
  for (std::uint32_t visited = all; visited > 0; visited -= 2) {  // every walk has visited vertex 0
    for (std::size_t at = 0; at < count; ++at) {
      if ((visited >> at & 1U) == 0) continue;
      double& least = rest[visited * count + at];
      if (visited == all) least = length[at][0];
      for (std::size_t to = 1; to < count; ++to) least = std::min(least, way_by(visited, at, to));
    }
    if (visited == 1) break;
  }
  if (rest[count] == none) return {};
  std::vector<int> cycle = {0};
  for (std::uint32_t visited = 1; visited != all; visited |= 1U << cycle.back()) {
    const std::size_t at = at_index(cycle.back());
    std::size_t next = 1;
    while (way_by(visited, at, next) != rest[visited * count + at]) ++next;
    cycle.push_back(static_cast<int>(next));
  }
  return cycle;
}

std::vector<int> widest_cycle(const std::vector<std::vector<BytesPerSecond>>& capacity) {
  std::vector<BytesPerSecond> widths;
  for (const auto& row : capacity) {
    std::ranges::copy_if(row, std::back_inserter(widths), [](BytesPerSecond width) { return width.value() > 0.0; });
  }
  std::ranges::sort(widths, std::greater<>{});
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  for (const BytesPerSecond narrowest : widths) {
    std::vector<std::vector<double>> length(capacity.size());
    for (std::size_t from = 0; from < capacity.size(); ++from) {
      for (std::size_t to = 0; to < capacity.size(); ++to) {
        const bool leads = from != to && capacity[from][to] >= narrowest;
        length[from].push_back(leads ? 0.0 : std::numeric_limits<double>::infinity());
      }
    }
    std::vector<int> cycle = shortest_cycle(length);
    if (!cycle.empty()) return cycle;
  }
  return {};
}

}  // namespace foretrain

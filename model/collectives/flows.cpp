#include "model/collectives/flows.hpp"

#include <algorithm>
#include <utility>

namespace foretrain {

std::vector<Flow> merge_by_ends(std::vector<Flow> flows) {
  const auto ends = [](const Flow& flow) { return std::pair(flow.source, flow.destination); };
  if (!std::ranges::is_sorted(flows, {}, ends)) std::ranges::stable_sort(flows, {}, ends);
  std::size_t kept = 0;
  for (const Flow& flow : flows) {
    if (kept > 0 && ends(flows[kept - 1]) == ends(flow)) {
      flows[kept - 1].bytes += flow.bytes;
    } else {
      flows[kept++] = flow;
    }
  }
  flows.resize(kept);
  return flows;
}

}  // namespace foretrain

#include "model/training/expert_dispatch.hpp"

#include <cmath>
#include <set>

namespace foretrain {

double dispatched_share(int copies, const std::vector<int>& group, const Topology& topology) {
  std::set<int> nodes;
  for (const int rank : group) nodes.insert(topology.node_of(rank));
  const auto places = static_cast<double>(nodes.size() > 1 ? nodes.size() : group.size());
  return places * (1.0 - std::pow(1.0 - 1.0 / places, copies)) / copies;
}

}  // namespace foretrain

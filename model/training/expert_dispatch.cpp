#include "model/training/expert_dispatch.hpp"

#include <cmath>
#include <set>

namespace foretrain {

namespace {

std::size_t nodes_of(const std::vector<int>& group, const Topology& topology) {
  std::set<int> nodes;
  for (const int rank : group) nodes.insert(topology.node_of(rank));
  return nodes.size();
}

}  // namespace

double dispatched_share(int copies, const std::vector<int>& group, const Topology& topology, int beside) {
  const std::size_t nodes = nodes_of(group, topology);
  const auto places = static_cast<double>(nodes > 1 ? nodes : group.size() * static_cast<std::size_t>(beside));
  return places * (1.0 - std::pow(1.0 - 1.0 / places, copies)) / copies;
}

bool hides_dispatch(const Plan& plan, const std::vector<int>& group, const Topology& topology) {
  return plan.sync.overlap && plan.interleave > 1 && nodes_of(group, topology) > 1;
}

LayerCollective dispatched(LayerCollective call, const Plan& plan, const RankLayout& layout, int stage,
                           const Topology& topology) {
  if (call.copies == 1) return call;
  const std::vector<int> group = layout.groups(GroupKind::expert, stage).front();
  call.size *= dispatched_share(call.copies, group, topology, plan.folded_experts ? plan.tensor : 1);
  call.overlappable = hides_dispatch(plan, group, topology);
  return call;
}

}  // namespace foretrain

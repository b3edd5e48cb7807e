#include "sim/folding.hpp"

#include "model/collectives/flow_classes.hpp"

namespace foretrain {

Folding::Folding(const NetworkPlan& plan, bool fold) {
  const SharingSystem& system = plan.sharing_system();
  const SharingSystem::Folded folded = fold ? foretrain::fold(system) : keep_apart(system);
  links_.links = folded.bandwidth;
  links_.weights = folded.weight;
  for (const std::vector<SharingSystem::Folded::Crossing>& crossings : folded.crossings) {
    std::vector<LinkIndex>& route = links_.routes.emplace_back();
    for (const auto [link, flows] : crossings) route.insert(route.end(), static_cast<std::size_t>(flows), link);
  }
  std::vector<bool> represented(folded.classes());
  std::size_t flow = 0;
  for (const NetworkPlan::FlowSet& set : plan.sets()) {
    first_.push_back(flows_.size());
    for (const Flow& member : set.flows) {
      const RouteIndex route = folded.class_of_flow[flow++];
      if (represented[static_cast<std::size_t>(route)]) continue;
      represented[static_cast<std::size_t>(route)] = true;
      flows_.push_back({route, member.bytes});
    }
  }
  first_.push_back(flows_.size());
  for (; flow < folded.class_of_flow.size(); ++flow) background_.push_back(folded.class_of_flow[flow]);
}

std::span<const Folding::Representative> Folding::flows_of(SetIndex set) const {
  const auto at = static_cast<std::size_t>(set);
  return std::span(flows_).subspan(first_[at], first_[at + 1] - first_[at]);
}

}  // namespace foretrain

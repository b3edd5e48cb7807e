#include "sim/network_plan.hpp"

#include <algorithm>
#include <utility>

namespace foretrain {

LinkIndex NetworkPlan::add_link(BytesPerSecond bandwidth) {
  links_.push_back(bandwidth);
  return static_cast<LinkIndex>(links_.size() - 1);
}

RouteIndex NetworkPlan::add_route(PlannedRoute route) {
  routes_.push_back(std::move(route));
  return static_cast<RouteIndex>(routes_.size() - 1);
}

RouteIndex RouteFinder::find(EndpointId source, EndpointId destination) {
  const std::int64_t key = std::int64_t{source} * topology_.endpoints() + destination;
  const auto [known, unknown] = routes_.try_emplace(key, 0);
  if (!unknown) return known->second;
  PlannedRoute route{source, destination, {}};
  std::vector<LinkId> links;
  topology_.append_route(source, destination, links);
  for (const LinkId link : links) {
    const auto [index, is_new] = links_.try_emplace(link, 0);
    if (is_new) index->second = plan_.add_link(topology_.link_bandwidth(link));
    route.links.push_back(index->second);
  }
  return known->second = plan_.add_route(std::move(route));
}

FlowSet make_flow_set(std::vector<PlannedFlow> flows, const NetworkPlan& plan) {
  std::vector<std::pair<LinkIndex, Bytes>> loads;
  for (const PlannedFlow& flow : flows) {
    for (const LinkIndex link : plan.route(flow.route).links) loads.emplace_back(link, flow.bytes);
  }
  std::ranges::stable_sort(loads, {}, &std::pair<LinkIndex, Bytes>::first);
  FlowSet set{std::move(flows), {}, {}};
  for (auto load = loads.begin(); load != loads.end();) {
    const LinkIndex link = load->first;
    Bytes total;
    for (; load != loads.end() && load->first == link; ++load) total += load->second;
    set.links.push_back(link);
    set.alone = std::max(set.alone, total / plan.bandwidth(link));
  }
  return set;
}

}  // namespace foretrain

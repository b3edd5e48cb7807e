#include "sim/network_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace foretrain {

NetworkPlan::NetworkPlan(const Topology& topology)
    : topology_(topology), link_index_(static_cast<std::size_t>(topology.links()), -1) {}

LinkIndex NetworkPlan::new_link(BytesPerSecond bandwidth) {
  if (!(bandwidth > BytesPerSecond(0.0))) {
    throw std::invalid_argument(
        fmt::format("a flow crosses a link of {} byte/s, on which nothing can move", bandwidth.value()));
  }
  links_.push_back(bandwidth);
  load_.emplace_back();
  return static_cast<LinkIndex>(links_.size() - 1);
}

void NetworkPlan::find_route(EndpointId source, EndpointId destination) {
  crossed_.clear();
  topology_.append_route(source, destination, crossed_);
  for (LinkIndex& link : crossed_) {
    LinkIndex& known = link_index_[static_cast<std::size_t>(link)];
    if (known < 0) known = new_link(topology_.link_bandwidth(link));
    link = known;
  }
  if (!topology_.limits_connections()) return;
  const BytesPerSecond most_rate = topology_.most_rate(source, destination);
  if (!is_finite(most_rate)) return;
  const auto [limit, is_new] = connection_limit_.try_emplace(std::pair(source, destination), 0);
  if (is_new) limit->second = new_link(most_rate);
  crossed_.push_back(limit->second);
}

void NetworkPlan::append_known(EndpointId source, EndpointId destination, std::vector<LinkIndex>& links) const {
  const auto first = static_cast<std::ptrdiff_t>(links.size());
  topology_.append_route(source, destination, links);
  for (auto link = links.begin() + first; link != links.end(); ++link) {
    *link = link_index_[static_cast<std::size_t>(*link)];
  }
  const auto limit = connection_limit_.find(std::pair(source, destination));
  if (limit != connection_limit_.end()) links.push_back(limit->second);
}

SetIndex NetworkPlan::add_set(std::vector<Flow> flows) {
  const auto pair = [](const Flow& flow) { return std::pair(flow.source, flow.destination); };
  if (!std::ranges::is_sorted(flows, {}, pair)) std::ranges::stable_sort(flows, {}, pair);
  FlowSet set;
  set.flows.reserve(flows.size());
  for (const Flow& flow : flows) {
    if (flow.source == flow.destination || !(flow.bytes > Bytes(0.0))) continue;
    if (set.flows.empty() || pair(set.flows.back()) != pair(flow)) {
      set.flows.push_back(flow);
    } else {
      set.flows.back().bytes += flow.bytes;
    }
  }
  for (const Flow& flow : set.flows) {
    find_route(flow.source, flow.destination);
    for (const LinkIndex link : crossed_) {
      Bytes& load = load_[static_cast<std::size_t>(link)];
      if (load == Bytes(0.0)) set.links.push_back(link);
      load += flow.bytes;
    }
  }
  for (const LinkIndex link : set.links) {
    Bytes& load = load_[static_cast<std::size_t>(link)];
    set.alone = std::max(set.alone, load / links_[static_cast<std::size_t>(link)]);
    load = Bytes(0.0);
  }
  sets_.push_back(std::move(set));
  return static_cast<SetIndex>(sets_.size() - 1);
}

void NetworkPlan::add_background(const BackgroundRoute& route) {
  find_route(route.source, route.destination);
  background_.push_back({route, is_finite(route.rate) ? new_link(route.rate) : -1});
}

std::vector<LinkIndex> NetworkPlan::background_links() const {
  std::vector<LinkIndex> links;
  for (const Background& flow : background_) {
    append_known(flow.route.source, flow.route.destination, links);
  }
  return links;
}

SharingSystem NetworkPlan::sharing_system() const {
  SharingSystem system;
  system.bandwidth = links_;
  std::vector<LinkIndex> crossed;
  const auto add = [&](std::int32_t kind, EndpointId source, EndpointId destination, LinkIndex limit) {
    crossed.clear();
    append_known(source, destination, crossed);
    if (limit >= 0) crossed.push_back(limit);
    system.add_flow(kind, crossed);
  };
  std::int32_t kinds = 0;
  for (const FlowSet& set : sets_) {
    std::map<Bytes, std::int32_t> kind_of_size;
    for (const Flow& flow : set.flows) {
      const auto [kind, is_new] = kind_of_size.try_emplace(flow.bytes, kinds);
      if (is_new) ++kinds;
      add(kind->second, flow.source, flow.destination, -1);
    }
  }
  for (const Background& flow : background_) add(kinds++, flow.route.source, flow.route.destination, flow.limit);
  return system;
}

}  // namespace foretrain

#include "sim/network_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/collectives/link_load.hpp"

namespace foretrain {

NetworkPlan::NetworkPlan(const Topology& topology)
    : topology_(topology), link_index_(static_cast<std::size_t>(topology.links()), -1) {}

LinkIndex NetworkPlan::new_link(BytesPerSecond bandwidth) {
  if (!(bandwidth > BytesPerSecond(0.0))) {
    throw ImpossiblePlan(
        fmt::format("a flow crosses a link of {} byte/s, on which nothing can move", bandwidth.value()));
  }
  system_.bandwidth.push_back(bandwidth);
  load_.emplace_back();
  return static_cast<LinkIndex>(system_.links() - 1);
}

void NetworkPlan::find_links(EndpointId source, EndpointId destination) {
  route_.clear();
  crossed_.clear();
  topology_.append_route(source, destination, route_);
  for (const LinkId link : route_) {
    LinkIndex& known = link_index_[at_index(link)];
    if (known < 0) known = new_link(topology_.link_bandwidth(link));
    crossed_.push_back(known);
  }
}

BytesPerSecond NetworkPlan::most_rate_of(const Flow& flow) const {
  if (!topology_.limits_connections()) return flow.most_rate;
  return std::min(flow.most_rate, topology_.most_rate(flow.source, flow.destination));
}

void NetworkPlan::find_route(const Flow& flow) {
  find_links(flow.source, flow.destination);
  visit_cards(flow, route_, topology_, [&](LinkId card, double times) {
    const auto [held, is_new] = held_cards_.try_emplace({card, times}, 0);
    if (is_new) held->second = new_link(topology_.link_bandwidth(card) / times);
    crossed_.push_back(held->second);
  });
  const BytesPerSecond most_rate = most_rate_of(flow);
  if (!is_finite(most_rate)) return;
  const auto [limit, is_new] = connection_limit_.try_emplace({flow.source, flow.destination, most_rate}, 0);
  if (is_new) limit->second = new_link(most_rate);
  crossed_.push_back(limit->second);
}

SetIndex NetworkPlan::add_set(std::vector<Flow> flows) {
  std::erase_if(flows, [](const Flow& flow) { return flow.source == flow.destination || !(flow.bytes > Bytes(0.0)); });
  NetworkPlan::FlowSet set;
  set.flows = merge_by_ends(std::move(flows));
  std::map<Bytes, std::int32_t> kind_of_size;  // classes tell weights apart themselves
  std::erase_if(set.flows, [&](const Flow& flow) {
    find_route(flow);
    if (crossed_.empty()) return true;
    for (const LinkIndex link : crossed_) {
      Bytes& load = load_[static_cast<std::size_t>(link)];
      if (load == Bytes(0.0)) set.links.push_back(link);
      load += flow.bytes;
    }
    const auto [kind, is_new] = kind_of_size.try_emplace(flow.bytes, kinds_);
    if (is_new) ++kinds_;
    system_.add_flow(kind->second, crossed_, flow.weight);
    return false;
  });
  for (const LinkIndex link : set.links) {
    Bytes& load = load_[static_cast<std::size_t>(link)];
    set.uncontended = std::max(set.uncontended, load / system_.bandwidth[static_cast<std::size_t>(link)]);
    load = Bytes(0.0);
  }
  sets_.push_back(std::move(set));
  return static_cast<SetIndex>(sets_.size() - 1);
}

void NetworkPlan::add_background(const BackgroundFlow::Route& route) {
  find_links(route.source, route.destination);
  const BytesPerSecond rate = std::min(route.rate, topology_.most_rate(route.source, route.destination));
  if (is_finite(rate)) crossed_.push_back(new_link(rate));
  background_.push_back(crossed_);
}

void NetworkPlan::complete() {
  // Equal hashes by chance would only have flows looked at that do not meet.
  std::vector<std::uint64_t> users(system_.links());
  for (const std::vector<LinkIndex>& crossed : background_) {
    system_.add_flow(kinds_++, crossed);
    for (const LinkIndex link : crossed) users[at_index(link)] = 1;
  }
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    for (const LinkIndex link : sets_[set].links) users[at_index(link)] = hash_of(users[at_index(link)], set);
  }
  std::unordered_map<std::uint64_t, LinkIndex> bundle_of_users;
  for (const std::uint64_t own : users) {
    const auto number = static_cast<LinkIndex>(bundle_of_users.size());
    bundle_of_link_.push_back(bundle_of_users.try_emplace(own, number).first->second);
  }
  bundles_ = bundle_of_users.size();
  std::vector<bool> named(bundles_);
  for (NetworkPlan::FlowSet& set : sets_) {
    std::vector<LinkIndex> bundles;
    for (const LinkIndex link : set.links) {
      const LinkIndex bundle = bundle_of_link_[static_cast<std::size_t>(link)];
      if (!named[static_cast<std::size_t>(bundle)]) bundles.push_back(bundle);
      named[static_cast<std::size_t>(bundle)] = true;
    }
    for (const LinkIndex bundle : bundles) named[static_cast<std::size_t>(bundle)] = false;
    set.links = std::move(bundles);
  }
}

std::vector<LinkIndex> NetworkPlan::background_bundles() const {
  std::vector<LinkIndex> bundles;
  for (const std::vector<LinkIndex>& crossed : background_) {
    for (const LinkIndex link : crossed) bundles.push_back(bundle_of_link_[at_index(link)]);
  }
  return bundles;
}

}  // namespace foretrain

#include "sim/platform.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "model/base/number.hpp"

namespace foretrain {

Platform::Platform(const SharingSystem::Folded& system, std::size_t most_unknown)
    : system_(system), most_unknown_(most_unknown), routes_(system.classes()), links_(system.bandwidth.size()) {
  for (const auto& crossed : system.crossings) {
    for (const auto [link, times] : crossed) repeated_ += times - 1.0;
  }
}

void Platform::start(RouteIndex index, Bytes bytes, std::int32_t owner, Seconds now) {
  now_ = now;
  if (route(index).flows.empty()) {
    for (const auto [link, times] : crossings(index)) links_[at_index(link)].users.push_back(index);
  }
  route(index).flows.push_back({owner, Bytes(std::max(1.0, std::round(bytes.value()))), now});
  note_change(index);
}

std::vector<std::int32_t> Platform::end_flows(Seconds now) {
  now_ = now;
  std::vector<std::int32_t> owners;
  const auto ends = [&](const Flow& flow) {
    if (flow.end > now_ + same_date) return false;
    owners.push_back(flow.owner);
    return true;
  };
  while (first_end() <= now_ + same_date) {
    const ComponentId id = ends_.top().second;
    ends_.pop();
    for (const RouteIndex index : components_.at(id)) {
      if (std::erase_if(route(index).flows, ends) == 0) continue;
      note_change(index);
      if (!route(index).flows.empty()) continue;
      for (const auto [link, times] : crossings(index)) std::erase(links_[at_index(link)].users, index);
    }
  }
  return owners;
}

void Platform::note_change(RouteIndex index) {
  if (!std::exchange(route(index).has_changed, true)) changed_.push_back(index);
}

void Platform::share_links() {
  if (changed_.empty()) return;
  if (known_routes_ >= most_unknown_ && 4 * known_routes_ >= 3 * met_routes_) return share_in_parts();
  ++look_;
  for (const RouteIndex index : changed_) {
    dissolve(route(index).component);
    visit_neighbours(index, [this](RouteIndex other) { dissolve(route(other).component); });
  }
  ++look_;
  for (const RouteIndex index : changed_) {
    route(index).has_changed = false;
    gather(index);
  }
  for (const RouteIndex index : dissolved_) gather(index);
  changed_.clear();
  dissolved_.clear();
}

/// The routes on the links of a route; those of each link once each time that all are looked through.
template <typename Visit>
void Platform::visit_neighbours(RouteIndex index, const Visit& visit) {
  for (const auto [number, times] : crossings(index)) {
    Link& link = links_[at_index(number)];
    if (std::exchange(link.seen, look_) == look_) continue;
    for (const RouteIndex user : link.users) visit(user);
  }
}

void Platform::dissolve(ComponentId id) {
  if (id < 0) return;
  const auto old = components_.extract(id);
  for (const RouteIndex index : old.mapped()) route(index).component = -1;
  dissolved_.insert(dissolved_.end(), old.mapped().begin(), old.mapped().end());
}

/// The component of a route that moves and has none.
void Platform::gather(RouteIndex first) {
  if (route(first).component >= 0 || route(first).flows.empty()) return;
  const ComponentId id = next_component_++;
  Component& routes = components_[id];
  const auto join = [&](RouteIndex index) {
    if (std::exchange(route(index).component, id) != id) routes.push_back(index);
  };
  join(first);
  for (std::size_t i = 0; i < routes.size(); ++i) visit_neighbours(routes[i], join);  // their number grows
  set_rates(id, rates_of(id, routes));
}

/// From then on every route is a component of its own.
void Platform::share_in_parts() {
  if (!in_parts_) {
    in_parts_.emplace(system_, [this](const SharingSystem::Folded& left, Pattern& moving) { share(left, moving); });
    known_.clear();
    for (RouteIndex index = 0; std::cmp_less(index, routes_.size()); ++index) {
      if (!route(index).flows.empty()) note_change(index);
    }
  }
  for (const RouteIndex index : changed_) {
    dissolve(route(index).component);
    route(index).has_changed = false;
    in_parts_->change(index, flows_on(index));
  }
  changed_.clear();
  for (const RouteRate& rate : in_parts_->settle()) {
    dissolve(route(rate.route).component);
    components_[route(rate.route).component = next_component_++] = {rate.route};
    set_rates(route(rate.route).component, {&rate, 1});
  }
  dissolved_.clear();
}

void Platform::set_rates(ComponentId id, std::span<const RouteRate> rates) {
  Seconds first_end = Seconds::infinity();
  for (const RouteRate& member : rates) {
    for (Flow& flow : route(member.route).flows) {
      set_rate(flow, member.rate);
      first_end = std::min(first_end, flow.end);
    }
  }
  ends_.emplace(first_end, id);
}

const Platform::Pattern& Platform::rates_of(ComponentId id, const Component& component) {
  std::uint64_t hash = 0;
  met_routes_ += component.size();
  for (const RouteIndex index : component) hash += RouteRate{index, flows_on(index)}.hash();
  const auto moves = [&](const RouteRate& member) {
    return route(member.route).component == id && flows_on(member.route) == member.flows;
  };
  const auto [first, last] = known_.equal_range(hash);
  for (auto known = first; known != last; ++known) {
    if (known->second.size() == component.size() && std::ranges::all_of(known->second, moves)) return known->second;
  }
  Pattern moving;
  for (const RouteIndex index : component) moving.push_back({index, flows_on(index)});
  share(system_, moving);
  constexpr std::size_t most_routes = 8'000'000;  // 128 MB
  if ((known_routes_ += moving.size()) > most_routes) {
    known_.clear();
    known_routes_ = met_routes_ = moving.size();
  }
  return known_.emplace(hash, std::move(moving))->second;
}

void Platform::share(const SharingSystem::Folded& system, Pattern& moving) {
  if (!share_one_link(system, moving)) share_many_links(system, moving);
}

/// If one link bounds all of these, max–min fairly each flow moves at its weight's share of that link: weight · min
/// over links of bandwidth / (sum of the weights of the flows that cross it). False where no link does.
bool Platform::share_one_link(const SharingSystem::Folded& system, Pattern& moving) {
  std::vector<LinkIndex> loaded;
  for (const RouteRate& route : moving) {
    for (const auto [number, times] : crossings(route.route)) {
      double& weight = links_[at_index(number)].weight;
      if (weight == 0.0) loaded.push_back(number);
      weight += system.weight[at_index(route.route)] * route.flows * times;
    }
  }
  const auto share = [&](LinkIndex link) {
    return std::pair(system.bandwidth[at_index(link)] / links_[at_index(link)].weight, link);
  };
  const auto [of_fullest, fullest] = std::ranges::min(loaded | std::views::transform(share));
  for (const LinkIndex link : loaded) links_[at_index(link)].weight = 0.0;
  for (RouteRate& route : moving) {
    const auto& crossed = crossings(route.route);
    if (std::ranges::find(crossed, fullest, &SharingSystem::Folded::Crossing::link) == crossed.end()) return false;
    route.rate = of_fullest * system.weight[at_index(route.route)];
  }
  return true;
}

/// SimGrid repeats a link as often as a route crosses it, some 90 bytes each time: many are filled progressively here.
/// All patterns of a platform are shared by the same of the two.
void Platform::share_many_links(const SharingSystem::Folded& system, Pattern& moving) const {
  constexpr double most_repeated = 100'000;
  if (repeated_ < most_repeated) return ask_simgrid(system, moving);
  SharingSystem::Folded together{system.bandwidth, {}, {}, {}};
  for (const RouteRate& route : moving) {
    together.crossings.push_back(crossings(route.route));
    together.weight.push_back(system.weight[at_index(route.route)] * route.flows);
  }
  MaxMinRates fair(together);
  const std::vector<BytesPerSecond>& rates = fair.of(std::vector<bool>(moving.size(), true));
  for (std::size_t i = 0; i < moving.size(); ++i) moving[i].rate = rates[i] / moving[i].flows;
}

void Platform::set_rate(Flow& flow, BytesPerSecond rate) const {
  if (rate == flow.rate) return;
  flow.left = std::max(flow.left - flow.rate * (now_ - flow.since), Bytes(0.0));
  flow.rate = rate;
  flow.since = now_;
  flow.end = now_ + flow.left / rate;
}

Seconds Platform::first_end() {
  while (!ends_.empty() && !components_.contains(ends_.top().second)) ends_.pop();
  return ends_.empty() ? Seconds::infinity() : ends_.top().first;
}

}  // namespace foretrain

#include "sim/rates_in_parts.hpp"

#include <algorithm>
#include <utility>

namespace foretrain {

namespace {

/// Of bandwidths and rates: closer ones are the same.
constexpr double precision = 1e-12;

}  // namespace

RatesInParts::RatesInParts(const SharingSystem::Folded& system, Share share)
    : left_(system), share_(std::move(share)), routes_(system.classes()) {
  for (std::size_t route = 0; route < routes_.size(); ++route)
    routes_[route].rate.route = static_cast<RouteIndex>(route);
  for (const BytesPerSecond bandwidth : system.bandwidth) links_.push_back({bandwidth});
}

void RatesInParts::carry(Route& route, BytesPerSecond all) {
  for (const auto [link, times] : crossings(route)) links_[at(link)].carried += (all - route.carried) * times;
  route.carried = all;
}

void RatesInParts::touch(RouteIndex index) {
  for (const auto [link, times] : crossings(routes_[at(index)])) {
    if (std::exchange(links_[at(link)].touched, parts_) != parts_) touched_.push_back(link);
  }
}

void RatesInParts::join(RouteIndex index) {
  if (std::exchange(routes_[at(index)].joined, parts_) == parts_) return;
  part_.push_back(index);
  touch(index);
}

void RatesInParts::change(RouteIndex index, int flows) {
  Route& route = routes_[at(index)];
  carry(route, {});
  for (const auto [number, times] : crossings(route)) {
    std::vector<RouteIndex>& users = links_[at(number)].users;
    if (flows == 0) std::erase(users, index);
    if (flows > 0 && route.rate.flows == 0) users.push_back(index);
  }
  route.rate = {index, flows, {}};
  route.full_link = -1;
  if (flows > 0) {
    join(index);
  } else {
    touch(index);
  }
}

bool RatesInParts::is_full(const Link& link) { return link.carried >= link.bandwidth * (1.0 - precision); }

bool RatesInParts::limits(const Link& link, const Route& route) const {
  return is_full(link) && for_weight(route) >= link.fastest * (1.0 - precision);
}

bool RatesInParts::find_full_link(Route& route) {
  for (const auto [link, times] : crossings(route)) {
    if (!limits(links_[at(link)], route)) continue;
    route.full_link = link;
    return true;
  }
  return false;
}

/// Those outside the part whose full link has room or a faster one now, and those that hold up one of the part.
void RatesInParts::join_unsettled() {
  const std::size_t links = touched_.size(), routes = part_.size();
  for (std::size_t i = 0; i < links; ++i) {
    Link& link = links_[at(touched_[i])];
    link.fastest = {};
    for (const RouteIndex user : link.users) link.fastest = std::max(link.fastest, for_weight(routes_[at(user)]));
  }
  for (std::size_t i = 0; i < links; ++i) {
    for (const RouteIndex user : links_[at(touched_[i])].users) {
      Route& route = routes_[at(user)];
      if (route.joined == parts_ || route.full_link != touched_[i]) continue;
      if (!limits(links_[at(touched_[i])], route) && !find_full_link(route)) join(user);
    }
  }
  for (std::size_t i = 0; i < routes; ++i) {
    Route& route = routes_[at(part_[i])];
    if (find_full_link(route)) continue;
    const bool is_new = route.rate.rate == BytesPerSecond(0.0);
    for (const auto [link, times] : crossings(route)) {
      if (!is_full(links_[at(link)])) continue;
      for (const RouteIndex user : links_[at(link)].users) {
        const Route& other = routes_[at(user)];
        if (is_new ? other.full_link == link : for_weight(other) > for_weight(route)) join(user);
      }
    }
  }
}

void RatesInParts::share_part() {
  rates_.clear();
  for (const RouteIndex index : part_) {
    carry(routes_[at(index)], {});
    rates_.push_back(routes_[at(index)].rate);
  }
  for (const std::int32_t link : touched_) {
    const BytesPerSecond all = links_[at(link)].bandwidth;
    left_.bandwidth[at(link)] = std::max(all - links_[at(link)].carried, all * 1e-9);
  }
  if (!rates_.empty()) share_(left_, rates_);
  for (const RouteRate& rate : rates_) {
    Route& route = routes_[at(rate.route)];
    route.rate = rate;
    carry(route, rate.rate * rate.flows);
  }
}

const std::vector<RouteRate>& RatesInParts::settle() {
  std::size_t shared = 0;
  do {
    join_unsettled();
    if (shared > 0 && part_.size() == shared) break;
    shared = part_.size();
    share_part();
  } while (shared > 0);
  part_.clear();
  touched_.clear();
  ++parts_;
  return rates_;
}

}  // namespace foretrain

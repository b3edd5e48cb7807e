#include "sim/platform.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

// Ends closer than this are one, as to SimGrid (maxmin and timing precision in platform_simgrid.cpp).
constexpr Seconds same_date = 0.001_ns;

}  // namespace

Platform::Platform(const SharingSystem::Folded& system)
    : system_(system), routes_(system.classes()), links_(system.bandwidth.size()) {
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    for (const SharingSystem::Folded::Crossing& crossing : system.crossings[i]) {
      routes_[i].crossings.push_back({crossing.link});
    }
  }
}

void Platform::start(RouteIndex index, Bytes bytes, std::int32_t owner, Seconds now) {
  begin(index, {owner, Bytes(std::max(1.0, std::round(bytes.value()))), now});
}

void Platform::start_background(RouteIndex index, Seconds now) { begin(index, {-1, Bytes::infinity(), now}); }

void Platform::begin(RouteIndex index, const Flow& flow) {
  now_ = flow.since;
  if (route(index).flows.empty()) enter_links(index);
  route(index).flows.push_back(flow);
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
    const CompanyId id = ends_.top().second;
    ends_.pop();
    for (const RouteIndex index : companies_.at(id)) {
      if (std::erase_if(route(index).flows, ends) == 0) continue;
      note_change(index);
      if (route(index).flows.empty()) leave_links(index);
    }
  }
  return owners;
}

void Platform::note_change(RouteIndex index) {
  if (!std::exchange(route(index).has_changed, true)) changed_.push_back(index);
}

void Platform::enter_links(RouteIndex index) {
  std::vector<Crossing>& crossings = route(index).crossings;
  for (std::size_t i = 0; i < crossings.size(); ++i) {
    std::vector<User>& users = links_[static_cast<std::size_t>(crossings[i].link)].users;
    crossings[i].place = users.size();
    users.push_back({index, i});
  }
}

void Platform::leave_links(RouteIndex index) {
  for (const Crossing& crossing : route(index).crossings) {
    std::vector<User>& users = links_[static_cast<std::size_t>(crossing.link)].users;
    const User last = users.back();
    route(last.route).crossings[last.crossing].place = crossing.place;
    users[crossing.place] = last;
    users.pop_back();
  }
}

void Platform::share_links() {
  if (changed_.empty()) return;
  ++look_;
  for (const RouteIndex index : changed_) dissolve_around(index);
  ++look_;
  for (const RouteIndex index : changed_) {
    route(index).has_changed = false;
    gather(index);
  }
  for (const RouteIndex index : dissolved_) gather(index);
  changed_.clear();
  dissolved_.clear();
}

/// The routes on a link, once each time that all are looked through.
std::span<const Platform::User> Platform::users_unseen(LinkIndex link) {
  Link& l = links_[static_cast<std::size_t>(link)];
  if (std::exchange(l.seen, look_) == look_) return {};
  return l.users;
}

void Platform::dissolve_around(RouteIndex index) {
  dissolve(route(index).company);
  for (const Crossing& crossing : route(index).crossings) {
    for (const User& user : users_unseen(crossing.link)) dissolve(route(user.route).company);
  }
}

void Platform::dissolve(CompanyId id) {
  if (id < 0) return;
  const auto old = companies_.extract(id);
  for (const RouteIndex index : old.mapped()) route(index).company = -1;
  dissolved_.insert(dissolved_.end(), old.mapped().begin(), old.mapped().end());
}

/// The company of a route that moves and has none.
void Platform::gather(RouteIndex first) {
  if (route(first).company >= 0 || route(first).flows.empty()) return;
  const CompanyId id = next_company_++;
  Company& routes = companies_[id];
  const auto join = [&](RouteIndex index) {
    if (std::exchange(route(index).company, id) != id) routes.push_back(index);
  };
  join(first);
  for (std::size_t i = 0; i < routes.size(); ++i) {  // NOLINT(modernize-loop-convert): it grows meanwhile
    for (const Crossing& crossing : route(routes[i]).crossings) {
      for (const User& user : users_unseen(crossing.link)) join(user.route);
    }
  }
  Seconds first_end = Seconds::infinity();
  for (const RouteRate& member : rates_of(id, routes)) {
    for (Flow& flow : route(member.route).flows) {
      set_rate(flow, member.rate);
      first_end = std::min(first_end, flow.end);
    }
  }
  ends_.emplace(first_end, id);
}

const KnownRates::Pattern& Platform::rates_of(CompanyId id, const Company& company) {
  const auto flows_on = [&](RouteIndex index) { return static_cast<int>(route(index).flows.size()); };
  std::uint64_t hash = 0;
  for (const RouteIndex index : company) hash += RouteRate{index, flows_on(index)}.hash();
  const auto moves = [&](const RouteRate& member) {
    return route(member.route).company == id && flows_on(member.route) == member.flows;
  };
  if (const KnownRates::Pattern* known = known_.find(hash, company.size(), moves)) return *known;
  KnownRates::Pattern moving;
  for (const RouteIndex index : company) moving.push_back({index, flows_on(index)});
  if (!share_one_link(moving)) ask_simgrid(system_, moving);
  return known_.add(hash, std::move(moving));
}

/// Where one link bounds all of these, max–min fairly each flow moves at its weight's share of that link: weight · min
/// over links of bandwidth / (sum of the weights of the flows that cross it). False where no link does.
bool Platform::share_one_link(KnownRates::Pattern& moving) const {
  std::map<LinkIndex, double> weights;
  for (const RouteRate& route : moving) {
    for (const auto [link, times] : system_.crossings[at_index(route.route)]) {
      weights[link] += system_.weight[at_index(route.route)] * route.flows * times;
    }
  }
  const auto share = [&](const auto& link) { return system_.bandwidth[at_index(link.first)] / link.second; };
  const auto fullest = std::ranges::min_element(weights, {}, share);
  for (RouteRate& route : moving) {
    const auto& crossed = system_.crossings[at_index(route.route)];
    const bool bound =
        std::ranges::find(crossed, fullest->first, &SharingSystem::Folded::Crossing::link) != crossed.end();
    if (!bound) return false;
    route.rate = share(*fullest) * system_.weight[at_index(route.route)];
  }
  return true;
}

void Platform::set_rate(Flow& flow, BytesPerSecond rate) const {
  if (rate == flow.rate) return;
  flow.left = std::max(flow.left - flow.rate * (now_ - flow.since), Bytes(0.0));
  flow.rate = rate;
  flow.since = now_;
  flow.end = now_ + flow.left / rate;
}

Seconds Platform::first_end() {
  while (!ends_.empty() && !companies_.contains(ends_.top().second)) ends_.pop();
  return ends_.empty() ? Seconds::infinity() : ends_.top().first;
}

}  // namespace foretrain

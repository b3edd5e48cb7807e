#include "sim/platform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace foretrain {

namespace {

// Ends closer than this are one, as to SimGrid (maxmin and timing precision in platform_simgrid.cpp).
constexpr Seconds same_date = 0.001_ns;

}  // namespace

Platform::Platform(const RoutedLinks& links)
    : sharing_(LinkSharing::make(links)), routes_(links.routes.size()), links_(links.links.size()) {
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    std::vector<LinkIndex> crossed = links.routes[i];
    std::ranges::sort(crossed);
    crossed.erase(std::unique(crossed.begin(), crossed.end()), crossed.end());
    for (const LinkIndex link : crossed) routes_[i].crossings.push_back({link});
  }
}

Platform::FlowId Platform::new_flow() {
  if (free_flows_.empty()) {
    flows_.emplace_back();
    return static_cast<FlowId>(flows_.size() - 1);
  }
  const FlowId id = free_flows_.back();
  free_flows_.pop_back();
  return id;
}

Platform::FlowId Platform::start(RouteIndex index, Bytes bytes) {
  const FlowId id = new_flow();
  flow(id) = {Bytes(std::max(1.0, std::round(bytes.value())))};
  begin(index, id);
  return id;
}

void Platform::start_background(RouteIndex index) {
  const FlowId id = new_flow();
  flow(id) = {Bytes::infinity()};
  ++background_;
  begin(index, id);
}

int Platform::flows_in_progress() const {
  return static_cast<int>(flows_.size() - free_flows_.size() - finished_.size()) - background_;
}

std::vector<Platform::FlowId> Platform::take_finished() {
  std::vector<FlowId> finished = std::exchange(finished_, {});
  std::ranges::sort(finished);
  free_flows_.insert(free_flows_.end(), finished.rbegin(), finished.rend());
  return finished;
}

void Platform::begin(RouteIndex index, FlowId id) {
  flow(id).since = now_;
  if (route(index).flows.empty()) enter_links(index);
  route(index).flows.push_back(id);
  note_change(index);
}

void Platform::note_change(RouteIndex index) {
  if (!std::exchange(route(index).has_changed, true)) changed_.push_back(index);
  if (std::exchange(route(index).is_asked, false)) unasked_.push_back(index);
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

/// Rates anew for all whom a change concerns.
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
  Company& old = company(id);
  for (const RouteIndex index : old.routes) route(index).company = -1;
  dissolved_.insert(dissolved_.end(), old.routes.begin(), old.routes.end());
  old.routes.clear();
  ++old.generation;
  free_companies_.push_back(id);
}

Platform::CompanyId Platform::new_company() {
  if (free_companies_.empty()) {
    companies_.emplace_back();
    return static_cast<CompanyId>(companies_.size() - 1);
  }
  const CompanyId id = free_companies_.back();
  free_companies_.pop_back();
  return id;
}

/// The company of a route that moves and has none.
void Platform::gather(RouteIndex first) {
  if (route(first).company >= 0 || route(first).flows.empty()) return;
  const CompanyId id = new_company();
  std::vector<RouteIndex>& routes = company(id).routes;
  const auto join = [&](RouteIndex index) {
    if (route(index).company == id) return;
    route(index).company = id;
    routes.push_back(index);
  };
  join(first);
  for (std::size_t i = 0; i < routes.size(); ++i) {  // NOLINT(modernize-loop-convert): it grows meanwhile
    for (const Crossing& crossing : route(routes[i]).crossings) {
      for (const User& user : users_unseen(crossing.link)) join(user.route);
    }
  }
  for (const RouteRate& member : rates_of(id)) {
    for (const FlowId one : route(member.route).flows) set_rate(flow(one), member.rate);
  }
  ends_.emplace(first_end_of(company(id)), id, company(id).generation);
}

const KnownRates::Pattern& Platform::rates_of(CompanyId id) {
  const std::vector<RouteIndex>& routes = company(id).routes;
  const auto flows_on = [&](RouteIndex index) { return static_cast<int>(route(index).flows.size()); };
  std::uint64_t hash = 0;
  for (const RouteIndex index : routes) hash += RouteRate{index, flows_on(index)}.hash();
  const auto moves = [&](const RouteRate& member) {
    return route(member.route).company == id && flows_on(member.route) == member.flows;
  };
  const KnownRates::Pattern* known = known_.find(hash, routes.size(), moves);
  return known != nullptr ? *known : known_.add(hash, ask(company(id)));
}

/// SimGrid first hears of all that has changed since.
KnownRates::Pattern Platform::ask(const Company& company) {
  for (const RouteIndex index : unasked_) {
    route(index).is_asked = true;
    sharing_->set_flows(index, static_cast<int>(route(index).flows.size()));
  }
  unasked_.clear();
  sharing_->share();
  KnownRates::Pattern rates;
  for (const RouteIndex index : company.routes) {
    rates.push_back({index, static_cast<int>(route(index).flows.size()), sharing_->rate(index)});
  }
  return rates;
}

void Platform::set_rate(Flow& flow, BytesPerSecond rate) const {
  if (rate == flow.rate) return;
  flow.left = std::max(flow.left - flow.rate * (now_ - flow.since), Bytes(0.0));
  flow.rate = rate;
  flow.since = now_;
  flow.end = now_ + flow.left / rate;
}

Seconds Platform::first_end_of(const Company& company) const {
  Seconds first = Seconds::infinity();
  for (const RouteIndex index : company.routes) {
    for (const FlowId id : routes_[static_cast<std::size_t>(index)].flows) {
      first = std::min(first, flows_[static_cast<std::size_t>(id)].end);
    }
  }
  return first;
}

Seconds Platform::first_end() {
  while (!ends_.empty()) {
    const auto& [date, id, generation] = ends_.top();
    if (company(id).generation == generation) return date;
    ends_.pop();
  }
  return Seconds::infinity();
}

/// Flows whose end has come make room on their links.
void Platform::end_flows() {
  while (first_end() <= now_ + same_date) {
    const CompanyId id = std::get<1>(ends_.top());
    ends_.pop();
    for (const RouteIndex index : company(id).routes) {
      std::vector<FlowId>& moving = route(index).flows;
      const std::size_t before = moving.size();
      std::erase_if(moving, [&](FlowId one) {
        const bool ends = flow(one).end <= now_ + same_date;
        if (ends) ended_.push_back(one);
        return ends;
      });
      if (moving.size() == before) continue;
      note_change(index);
      if (moving.empty()) leave_links(index);
    }
  }
}

void Platform::set_alarm(Seconds date) { alarm_ = std::max(date, now_); }

bool Platform::wake_if_due(const std::function<void()>& wake) {
  if (alarm_ > now_) return false;
  alarm_ = Seconds::infinity();
  wake();
  return true;
}

/// Whoever waits for the alarm's date acts before hearing of the flows that end then.
void Platform::run(const std::function<void()>& wake) {
  for (;;) {
    share_links();
    const Seconds next = std::min(alarm_, first_end());
    if (!is_finite(next)) return;
    now_ = std::max(now_, next);
    end_flows();
    while (wake_if_due(wake)) {
    }
    if (ended_.empty()) continue;
    finished_.insert(finished_.end(), ended_.begin(), ended_.end());
    ended_.clear();
    set_alarm(now_);
    while (wake_if_due(wake)) {
    }
  }
}

void check_platform() {
  // The first route has a link of its own, the next two share one, one crosses its own twice; of the last two, one has
  // three quarters of a link, and the other the rest until it can have all: (3/4) · t = 1, then 1 − t/4 more.
  const BytesPerSecond bandwidth = 450.0_GBps;
  const Bytes bytes = 450.0_MB;
  const Seconds once = bytes / bandwidth;
  const RoutedLinks links{
      {bandwidth, bandwidth, bandwidth, bandwidth}, {{0}, {1}, {1}, {2, 2}, {3}, {3}}, {1.0, 1.0, 1.0, 1.0, 3.0, 1.0}};
  Platform platform(links);
  std::vector<Seconds> ended(links.routes.size());
  platform.set_alarm(Seconds(0.0));
  platform.run([&, started = false]() mutable {
    if (!started) {
      for (const RouteIndex route : {0, 1, 2, 3, 4, 5}) platform.start(route, bytes);
      started = true;
    }
    for (const Platform::FlowId flow : platform.take_finished()) {
      ended[static_cast<std::size_t>(flow)] = platform.now();
    }
  });
  const std::array<Seconds, 6> expected = {once, 2.0 * once, 2.0 * once, 2.0 * once, once * (4.0 / 3.0), 2.0 * once};
  for (std::size_t flow = 0; flow < ended.size(); ++flow) {
    if (std::abs(ended[flow] / expected[flow] - 1.0) < 1e-6) continue;
    throw std::runtime_error(fmt::format(
        "this SimGrid does not share links exactly: a flow of {} bytes took {} s instead of {} s; use a version from "
        "3.32 on whose network model CM02 can be set up as sim/platform_simgrid.cpp does",
        bytes.value(), ended[flow].value(), expected[flow].value()));
  }
}

}  // namespace foretrain

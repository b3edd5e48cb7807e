// Flows in progress: each moves at the rate at which SimGrid shares the links among those that are moving, from one
// change to the next. Flows that no chain of shared links joins cannot disturb each other: where some begin or end,
// only their own company is looked at anew, and SimGrid is asked once for each company that there ever is and that more
// than one link bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/link_sharing.hpp"

namespace foretrain {

/// Rates at which routes have been found to move together: training repeats itself, micro-batch by micro-batch.
class KnownRates {
 public:
  using Pattern = std::vector<RouteRate>;

  /// Those of as many routes with this sum of hashes, all of which `moves(route)` finds moving; null where there are
  /// none. Valid until the next add().
  template <typename Moves>
  [[nodiscard]] const Pattern* find(std::uint64_t hash, std::size_t routes, const Moves& moves) const {
    const auto [begin, end] = patterns_.equal_range(hash);
    for (auto known = begin; known != end; ++known) {
      const Pattern& pattern = known->second;
      bool same = pattern.size() == routes;
      for (std::size_t i = 0; same && i < routes; ++i) same = moves(pattern[i]);
      if (same) return &pattern;
    }
    return nullptr;
  }

  /// Beyond so many routes nothing more is remembered.
  const Pattern& add(std::uint64_t hash, Pattern pattern) {
    constexpr std::size_t most_routes = 8'000'000;  // 128 MB
    if (remembered_ + pattern.size() > most_routes) return last_ = std::move(pattern);
    remembered_ += pattern.size();
    return patterns_.emplace(hash, std::move(pattern))->second;
  }

 private:
  std::unordered_multimap<std::uint64_t, Pattern> patterns_;
  std::size_t remembered_ = 0;
  Pattern last_;
};

/// Flows begin and end at dates that do not lie before the last one's; share_links() follows before the next date.
class Platform {
 public:
  /// The system must outlive the platform.
  explicit Platform(const SharingSystem::Folded& system);

  /// Begins a flow. Bytes are whole: `bytes` is rounded, to one at least. The route must have links. `owner`: whom its
  /// end concerns.
  void start(RouteIndex route, Bytes bytes, std::int32_t owner, Seconds now);
  /// Begins a flow that never ends.
  void start_background(RouteIndex route, Seconds now);
  /// Ends the flows whose end has come, which make room on their links: their owners.
  std::vector<std::int32_t> end_flows(Seconds now);
  /// Rates anew for all whom a change concerns.
  void share_links();
  /// Of a flow, at the rates that are shared; infinity where nothing moves but the background.
  [[nodiscard]] Seconds first_end();

 private:
  using LinkIndex = std::int32_t;
  using CompanyId = std::int64_t;
  struct Flow {
    std::int32_t owner = -1;
    Bytes left;     ///< at `since`
    Seconds since;  ///< when `rate` was set
    BytesPerSecond rate = {};
    Seconds end = Seconds::infinity();
  };
  /// Where a moving route stands among those of one of its links.
  struct Crossing {
    LinkIndex link = 0;
    std::size_t place = 0;
  };
  struct Route {
    std::vector<Crossing> crossings;  ///< each link once
    std::vector<Flow> flows;          ///< that are moving
    CompanyId company = -1;
    bool has_changed = false;
  };
  /// A route on a link, and which of its crossings this is.
  struct User {
    RouteIndex route = 0;
    std::size_t crossing = 0;
  };
  struct Link {
    std::vector<User> users;  ///< the routes that are moving
    std::int64_t seen = 0;    ///< in which look through the links
  };
  /// Moving routes that chains of shared links join.
  using Company = std::vector<RouteIndex>;
  /// (first end of a flow, company)
  using End = std::pair<Seconds, CompanyId>;

  void begin(RouteIndex route, const Flow& flow);
  void enter_links(RouteIndex route);
  void leave_links(RouteIndex route);
  void note_change(RouteIndex route);

  std::span<const User> users_unseen(LinkIndex link);
  void dissolve(CompanyId id);
  void dissolve_around(RouteIndex route);
  void gather(RouteIndex first);
  [[nodiscard]] const KnownRates::Pattern& rates_of(CompanyId id, const Company& company);
  [[nodiscard]] bool share_one_link(KnownRates::Pattern& moving) const;
  void set_rate(Flow& flow, BytesPerSecond rate) const;

  Route& route(RouteIndex index) { return routes_[static_cast<std::size_t>(index)]; }

  const SharingSystem::Folded& system_;
  std::vector<Route> routes_;
  std::vector<Link> links_;
  std::int64_t look_ = 0;
  std::vector<RouteIndex> changed_;    ///< on which flows have begun or ended since links were shared
  std::vector<RouteIndex> dissolved_;  ///< whose company is not known yet
  KnownRates known_;
  std::unordered_map<CompanyId, Company> companies_;
  CompanyId next_company_ = 0;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  Seconds now_;
};

}  // namespace foretrain

// Flows in progress: each moves at the rate at which SimGrid shares the links among those that are moving, from one
// change to the next. Flows that no chain of shared links joins cannot disturb each other: where some begin or end,
// only their own component is looked at anew, and SimGrid is asked once for each component that there ever is and that
// more than one link bounds; where routes repeat links very often, these are filled progressively instead. If
// components hardly repeat, it is asked only for the routes whose rates change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/link_sharing.hpp"
#include "sim/rates_in_parts.hpp"

namespace foretrain {

/// Flows begin and end at dates that do not lie before the last one's; share_links() follows before the next date.
class Platform {
 public:
  /// The system must outlive the platform. Once so many routes have moved in patterns that were not known, and these
  /// are most of all patterns, parts of components are shared.
  explicit Platform(const SharingSystem::Folded& system, std::size_t most_unknown = 100'000);

  /// Begins a flow, which may be endless. Bytes are whole: `bytes` is rounded, to one at least. The route must have
  /// links. `owner`: whom its end concerns.
  void start(RouteIndex route, Bytes bytes, std::int32_t owner, Seconds now);
  /// Ends the flows whose end has come, which make room on their links: their owners.
  std::vector<std::int32_t> end_flows(Seconds now);
  /// Rates anew for all whom a change concerns.
  void share_links();
  /// First end of a flow at the shared rates; infinity if only the background moves.
  [[nodiscard]] Seconds first_end();

 private:
  using LinkIndex = std::int32_t;
  using ComponentId = std::int64_t;
  /// Ends closer than this are one, as to SimGrid (maxmin and timing precision in platform_simgrid.cpp).
  static constexpr Seconds same_date = 0.001_ns;
  struct Flow {
    std::int32_t owner = -1;
    Bytes left;     ///< at `since`
    Seconds since;  ///< when `rate` was set
    BytesPerSecond rate = {};
    Seconds end = Seconds::infinity();
  };
  struct Route {
    std::vector<Flow> flows;  ///< that are moving
    ComponentId component = -1;
    bool has_changed = false;
  };
  struct Link {
    std::vector<RouteIndex> users;  ///< the routes that are moving
    std::int64_t seen = 0;          ///< in which look through the links
    double weight = 0.0;            ///< of the flows on it; zero between calls
  };
  /// Moving routes that chains of shared links join.
  using Component = std::vector<RouteIndex>;
  /// Rates at which routes have been found to move together: training repeats itself, micro-batch by micro-batch.
  using Pattern = std::vector<RouteRate>;
  /// (first end of a flow, component)
  using End = std::pair<Seconds, ComponentId>;

  void note_change(RouteIndex route);

  template <typename Visit>
  void visit_neighbours(RouteIndex route, const Visit& visit);
  void dissolve(ComponentId id);
  void gather(RouteIndex first);
  void share_in_parts();
  void set_rates(ComponentId id, std::span<const RouteRate> rates);
  [[nodiscard]] const Pattern& rates_of(ComponentId id, const Component& component);
  void share(const SharingSystem::Folded& system, Pattern& moving);
  [[nodiscard]] bool share_one_link(const SharingSystem::Folded& system, Pattern& moving);
  void share_many_links(const SharingSystem::Folded& system, Pattern& moving) const;
  void set_rate(Flow& flow, BytesPerSecond rate) const;

  Route& route(RouteIndex index) { return routes_[static_cast<std::size_t>(index)]; }
  int flows_on(RouteIndex index) { return static_cast<int>(route(index).flows.size()); }
  [[nodiscard]] const std::vector<SharingSystem::Folded::Crossing>& crossings(RouteIndex index) const {
    return system_.crossings[static_cast<std::size_t>(index)];
  }

  const SharingSystem::Folded& system_;
  std::size_t most_unknown_;
  double repeated_ = 0.0;  ///< crossings of links beyond the first, over all routes
  std::vector<Route> routes_;
  std::vector<Link> links_;
  std::int64_t look_ = 0;
  std::vector<RouteIndex> changed_;    ///< on which flows have begun or ended since links were shared
  std::vector<RouteIndex> dissolved_;  ///< without a known component yet
  std::unordered_multimap<std::uint64_t, Pattern> known_;  ///< by the sum of their hashes
  std::size_t known_routes_ = 0;                           ///< in all of these
  std::size_t met_routes_ = 0;                             ///< in these, as often as each has come
  std::optional<RatesInParts> in_parts_;
  std::unordered_map<ComponentId, Component> components_;
  ComponentId next_component_ = 0;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  Seconds now_;
};

}  // namespace foretrain

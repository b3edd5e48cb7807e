// Flows in progress: each moves at the rate at which SimGrid shares the links among those that are moving, from one
// change to the next. Flows that no chain of shared links joins cannot disturb each other: where some begin or end,
// only their own company is looked at anew, and SimGrid is asked once for each company that there ever is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <span>
#include <tuple>
#include <vector>

#include "model/base/quantity.hpp"
#include "sim/known_rates.hpp"
#include "sim/link_sharing.hpp"

namespace foretrain {

class Platform {
 public:
  /// Identifies a flow from its start until take_finished() has reported it; then the number is used again.
  using FlowId = std::int32_t;

  /// As LinkSharing::make. The links must outlive the platform.
  explicit Platform(const RoutedLinks& links);

  /// Starts a flow now. Bytes are whole: `bytes` is rounded, to one at least. The route must have links.
  FlowId start(RouteIndex route, Bytes bytes);
  /// Starts a flow that never ends and is never reported.
  void start_background(RouteIndex route);
  /// Without the background.
  [[nodiscard]] int flows_in_progress() const;
  /// The flows that have ended since the last call, in ascending order.
  std::vector<FlowId> take_finished();

  [[nodiscard]] Seconds now() const { return now_; }
  /// Sets the alarm, replacing an earlier setting. A date that has passed means now.
  void set_alarm(Seconds date);
  /// Lets time pass until nothing is left to happen. `wake` is called at the alarm, and when flows have ended.
  void run(const std::function<void()>& wake);

 private:
  using LinkIndex = std::int32_t;
  using CompanyId = std::int32_t;
  struct Flow {
    Bytes left;  ///< at `since`
    BytesPerSecond rate = {};
    Seconds since = {}, end = Seconds::infinity();
  };
  /// Where a moving route stands among those of one of its links.
  struct Crossing {
    LinkIndex link = 0;
    std::size_t place = 0;
  };
  struct Route {
    std::vector<Crossing> crossings;  ///< each link once
    std::vector<FlowId> flows;        ///< that are moving
    CompanyId company = -1;
    bool has_changed = false;
    bool is_asked = true;  ///< SimGrid knows how many flows move
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
  struct Company {
    std::vector<RouteIndex> routes;
    std::int32_t generation = 0;  ///< grows when it is dissolved
  };
  /// (first end of a flow, company, its generation)
  using End = std::tuple<Seconds, CompanyId, std::int32_t>;

  FlowId new_flow();
  void begin(RouteIndex route, FlowId flow);
  void enter_links(RouteIndex route);
  void leave_links(RouteIndex route);
  void note_change(RouteIndex route);
  [[nodiscard]] Seconds first_end();
  void end_flows();
  bool wake_if_due(const std::function<void()>& wake);

  void share_links();
  std::span<const User> users_unseen(LinkIndex link);
  void dissolve(CompanyId id);
  void dissolve_around(RouteIndex route);
  void gather(RouteIndex first);
  [[nodiscard]] const KnownRates::Pattern& rates_of(CompanyId id);
  KnownRates::Pattern ask(const Company& company);
  void set_rate(Flow& flow, BytesPerSecond rate) const;
  [[nodiscard]] Seconds first_end_of(const Company& company) const;
  CompanyId new_company();

  Route& route(RouteIndex index) { return routes_[static_cast<std::size_t>(index)]; }
  Flow& flow(FlowId id) { return flows_[static_cast<std::size_t>(id)]; }
  Company& company(CompanyId id) { return companies_[static_cast<std::size_t>(id)]; }

  std::unique_ptr<LinkSharing> sharing_;
  std::vector<Route> routes_;
  std::vector<Link> links_;
  std::int64_t look_ = 0;
  std::vector<Flow> flows_;
  std::vector<FlowId> free_flows_, ended_, finished_;
  int background_ = 0;
  std::vector<RouteIndex> changed_;    ///< on which flows have begun or ended since links were shared
  std::vector<RouteIndex> dissolved_;  ///< whose company is not known yet
  std::vector<RouteIndex> unasked_;    ///< on which flows have begun or ended since SimGrid was asked
  KnownRates known_;
  std::vector<Company> companies_;
  std::vector<CompanyId> free_companies_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  Seconds now_, alarm_ = Seconds::infinity();
};

/// Throws std::runtime_error unless SimGrid, as set up here, shares bandwidth exactly: one flow takes bytes over
/// bandwidth, two flows over one link take twice that, a link listed twice counts twice, weights 3 and 1 share 3 to 1.
void check_platform();

}  // namespace foretrain

// Fair rates as flows come and go, shared anew only among the routes that a change concerns. Rates are max–min fair if
// each flow has a full link on which none moves faster for its weight (Bertsekas and Gallager, Data Networks, 6.5.2):
// routes that lose theirs, or hold up others, join the part that is shared anew over what the rest leaves.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/link_sharing.hpp"

namespace foretrain {

class RatesInParts {
 public:
  /// Shares the links of a system, as ask_simgrid() does.
  using Share = std::function<void(const SharingSystem::Folded&, std::vector<RouteRate>&)>;

  RatesInParts(const SharingSystem::Folded& system, Share share);
  /// So many flows move on the route from now on; once for each route before rates are settled.
  void change(RouteIndex index, int flows);
  /// Rates after all changes: of every route whose rate may be another than before, among them all that have changed.
  const std::vector<RouteRate>& settle();

 private:
  struct Route {
    RouteRate rate{0, 0, {}};
    BytesPerSecond carried = {};  ///< by all its flows, as its links count them
    std::int32_t full_link = -1;  ///< on which none moves faster
    std::int64_t joined = -1;     ///< the last part that it joined
  };
  struct Link {
    BytesPerSecond bandwidth, carried = {};
    BytesPerSecond fastest = {};  ///< of its users, for each unit of weight
    std::vector<RouteIndex> users = {};
    std::int64_t touched = -1;  ///< by the last part of which routes cross it
  };

  void carry(Route& route, BytesPerSecond all);
  void touch(RouteIndex index);
  void join(RouteIndex index);
  void join_unsettled();
  void share_part();
  [[nodiscard]] bool find_full_link(Route& route);
  [[nodiscard]] static bool is_full(const Link& link);
  [[nodiscard]] bool limits(const Link& link, const Route& route) const;
  [[nodiscard]] BytesPerSecond for_weight(const Route& route) const {
    return route.rate.rate / left_.weight[at(route.rate.route)];
  }
  [[nodiscard]] const std::vector<SharingSystem::Folded::Crossing>& crossings(const Route& route) const {
    return left_.crossings[at(route.rate.route)];
  }
  static std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }

  SharingSystem::Folded left_;  ///< with what the routes outside the part leave of the bandwidths of its links
  Share share_;
  std::vector<Route> routes_;
  std::vector<Link> links_;
  std::int64_t parts_ = 0;
  std::vector<RouteIndex> part_;       ///< routes whose rates are settled anew
  std::vector<std::int32_t> touched_;  ///< links of these and of the changed
  std::vector<RouteRate> rates_;       ///< of the part
};

}  // namespace foretrain

// What SimGrid is asked: at which rates flows move that share links. Its library (platform_simgrid.cpp) answers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

using RouteIndex = std::int32_t;

/// Links and the routes over them. A route lists the links that it crosses by number; one listed twice carries every
/// byte twice. On a full link flows get rates in proportion to the weights of their routes.
struct RoutedLinks {
  std::vector<BytesPerSecond> links;
  std::vector<std::vector<std::int32_t>> routes;
  std::vector<double> weights = {};  ///< of each route; empty: all alike

  [[nodiscard]] double weight(RouteIndex route) const {
    return weights.empty() ? 1.0 : weights[static_cast<std::size_t>(route)];
  }
};

/// What a simulation asks of the process's SimGrid, which is one: one simulation at a time, in one thread. What was
/// asked by those before changes no bit.
class LinkSharing {
 public:
  /// Loads SimGrid where this is the first. Throws std::runtime_error where it cannot be loaded or others use it in
  /// this process, std::logic_error while there is another one. The links must outlive it.
  static std::unique_ptr<LinkSharing> make(const RoutedLinks& links);
  virtual ~LinkSharing() = default;

  /// From now on so many flows move over the route, none at first. The route must have links.
  virtual void set_flows(RouteIndex route, int flows) = 0;
  /// Divides the links among all flows that move, max–min fairly; work is done where something has changed.
  virtual void share() = 0;
  /// The rate that share() gave each of the route's flows.
  [[nodiscard]] virtual BytesPerSecond rate(RouteIndex route) const = 0;
};

/// Throws std::runtime_error unless SimGrid, as set up here, shares bandwidth exactly: one flow has all of its link,
/// two half each, a link listed twice counts twice, weights 3 and 1 share 3 to 1.
void check_link_sharing();

}  // namespace foretrain

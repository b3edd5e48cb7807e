// Interface to SimGrid: rates of flows that share links. Its library (platform_simgrid.cpp) answers.
#pragma once

#include <cstdint>
#include <span>

#include "model/base/hash.hpp"
#include "model/collectives/flow_classes.hpp"

namespace foretrain {

/// The links that a class of flows crosses, by the class's number (SharingSystem::Folded).
using RouteIndex = std::int32_t;

/// A route over which so many flows move, and the rate of each.
struct RouteRate {
  RouteIndex route = 0;
  int flows = 1;
  BytesPerSecond rate = {};

  [[nodiscard]] std::uint64_t hash() const {
    return summable_hash(static_cast<std::uint64_t>(route) | static_cast<std::uint64_t>(flows) << 32U);
  }
};

/// Rates at which all these move, each of which has links, max–min fairly by their weights. Of the process's SimGrid,
/// which is one: in one thread; what was asked before changes no bit. Loads and checks it where this is the first time.
/// Throws std::runtime_error where it cannot be loaded, others use it in this process, or it shares differently.
void ask_simgrid(const SharingSystem::Folded& system, std::span<RouteRate> moving);

/// Throws std::runtime_error unless SimGrid, as set up here, shares bandwidth exactly: one flow has all of its link,
/// two half each, a link crossed twice counts twice, weights 3 and 1 share 3 to 1.
void check_link_sharing();

}  // namespace foretrain

// What a simulation's flows can use: links and routes, numbered from zero, found before the first flow starts so that
// nothing else need exist in SimGrid.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/hardware/topology.hpp"

namespace foretrain {

using LinkIndex = std::int32_t;
using RouteIndex = std::int32_t;

/// A route between two endpoints; a link listed twice carries every byte twice. No links: the data stays where it is.
struct PlannedRoute {
  EndpointId source = 0;
  EndpointId destination = 0;
  std::vector<LinkIndex> links;
};

/// Links and routes in use. At most one route per ordered pair of endpoints.
class NetworkPlan {
 public:
  LinkIndex add_link(BytesPerSecond bandwidth);
  RouteIndex add_route(PlannedRoute route);

  [[nodiscard]] std::span<const BytesPerSecond> links() const { return links_; }
  [[nodiscard]] std::span<const PlannedRoute> routes() const { return routes_; }
  [[nodiscard]] BytesPerSecond bandwidth(LinkIndex link) const { return links_[static_cast<std::size_t>(link)]; }
  [[nodiscard]] const PlannedRoute& route(RouteIndex route) const { return routes_[static_cast<std::size_t>(route)]; }

 private:
  std::vector<BytesPerSecond> links_;
  std::vector<PlannedRoute> routes_;
};

/// Fills a plan with the routes that are asked for, each link and route once.
class RouteFinder {
 public:
  /// Both must outlive the finder.
  RouteFinder(const Topology& topology, NetworkPlan& plan) : topology_(topology), plan_(plan) {}
  RouteIndex find(EndpointId source, EndpointId destination);

 private:
  const Topology& topology_;
  NetworkPlan& plan_;
  std::unordered_map<std::int64_t, RouteIndex> routes_;
  std::unordered_map<LinkId, LinkIndex> links_;
};

struct PlannedFlow {
  RouteIndex route = 0;
  Bytes bytes;
};

/// Flows that start together.
struct FlowSet {
  std::vector<PlannedFlow> flows;
  std::vector<LinkIndex> links;  ///< every link that any of them crosses, once
  Seconds alone;                 ///< duration when nothing else moves: the busiest link's bytes over its bandwidth
};

FlowSet make_flow_set(std::vector<PlannedFlow> flows, const NetworkPlan& plan);

}  // namespace foretrain

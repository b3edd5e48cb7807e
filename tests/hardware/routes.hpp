// Properties of every route.
#pragma once

#include "model/hardware/topology.hpp"
#include "tests/catch.hpp"

namespace foretrain::test_routes {

/// `links` are those of the route, every id is a link, and the stated width is the narrowest of them, each divided by
/// how often it stands there.
inline void require_sound_route(const Topology& topology, const Route& route, const std::vector<LinkId>& links) {
  REQUIRE(links == route.links);
  BytesPerSecond narrowest = BytesPerSecond::infinity();
  for (const LinkId link : links) {
    REQUIRE(link >= 0);
    REQUIRE(link < topology.links());
    const auto times = static_cast<double>(std::ranges::count(links, link));
    narrowest = std::min(narrowest, topology.link_bandwidth(link) / times);
  }
  REQUIRE(route.bandwidth == narrowest);
}

}  // namespace foretrain::test_routes

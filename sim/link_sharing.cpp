#include "sim/link_sharing.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <stdexcept>

#include "model/base/own_file.hpp"

namespace foretrain {

namespace {

using MakeSharing = LinkSharing*(const RoutedLinks&);

MakeSharing* load_library() {
  try {
    return reinterpret_cast<MakeSharing*>(function_of_module(FORETRAIN_SIMGRID_LIBRARY, "foretrain_share_links"));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(
        fmt::format("several links bound flows that meet, and SimGrid cannot be loaded: {}; install SimGrid, or ask "
                    "for --fidelity estimate",
                    error.what()));
  }
}

MakeSharing& make_sharing() {
  static MakeSharing* const make = load_library();
  return *make;
}

}  // namespace

std::unique_ptr<LinkSharing> LinkSharing::make(const RoutedLinks& links) {
  return std::unique_ptr<LinkSharing>(make_sharing()(links));
}

void check_link_sharing() {
  const BytesPerSecond all = 450.0_GBps;
  const RoutedLinks links{{all, all, all, all}, {{0}, {1}, {1}, {2, 2}, {3}, {3}}, {1.0, 1.0, 1.0, 1.0, 3.0, 1.0}};
  constexpr std::array<double, 6> shares = {1.0, 0.5, 0.5, 0.5, 0.75, 0.25};
  const std::unique_ptr<LinkSharing> sharing = LinkSharing::make(links);
  for (const RouteIndex route : {0, 1, 2, 3, 4, 5}) sharing->set_flows(route, 1);
  sharing->share();
  for (const RouteIndex route : {0, 1, 2, 3, 4, 5}) {
    const BytesPerSecond rate = sharing->rate(route), expected = all * shares[static_cast<std::size_t>(route)];
    if (std::abs(rate / expected - 1.0) < 1e-6) continue;
    throw std::runtime_error(
        fmt::format("this SimGrid does not share links exactly: a flow moves at {} byte/s instead of {}; use a version "
                    "from 3.32 on "
                    "whose network model CM02 can be set up as sim/platform_simgrid.cpp does",
                    rate.value(), expected.value()));
  }
}

}  // namespace foretrain

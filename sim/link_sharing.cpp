#include "sim/link_sharing.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <stdexcept>

#include "model/base/own_file.hpp"

namespace foretrain {

namespace {

using ShareLinks = void(const SharingSystem::Folded&, std::span<RouteRate>);

ShareLinks* load_library() {
  try {
    return reinterpret_cast<ShareLinks*>(function_of_module(FORETRAIN_SIMGRID_LIBRARY, "foretrain_share_links"));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(
        fmt::format("several links bound flows that meet, and SimGrid cannot be loaded: {}; install SimGrid, or ask "
                    "for --fidelity estimate",
                    error.what()));
  }
}

void share_in_library(const SharingSystem::Folded& system, std::span<RouteRate> moving) {
  static ShareLinks* const share = load_library();
  share(system, moving);
}

}  // namespace

void ask_simgrid(const SharingSystem::Folded& system, std::span<RouteRate> moving) {
  // Before the first result: a SimGrid that shares links differently must not go unnoticed.
  [[maybe_unused]] static const bool checked = (check_link_sharing(), true);
  share_in_library(system, moving);
}

void check_link_sharing() {
  const BytesPerSecond all = 450.0_GBps;
  const SharingSystem::Folded system{{all, all, all, all},
                                     {},
                                     {{{0, 1}}, {{1, 1}}, {{1, 1}}, {{2, 2}}, {{3, 1}}, {{3, 1}}},
                                     {1.0, 1.0, 1.0, 1.0, 3.0, 1.0}};
  constexpr std::array<double, 6> shares = {1.0, 0.5, 0.5, 0.5, 0.75, 0.25};
  std::array<RouteRate, 6> moving{{{0}, {1}, {2}, {3}, {4}, {5}}};
  share_in_library(system, moving);
  for (const auto& [route, flows, rate] : moving) {
    const BytesPerSecond expected = all * shares[static_cast<std::size_t>(route)];
    if (std::abs(rate / expected - 1.0) < 1e-6) continue;
    throw std::runtime_error(
        fmt::format("this SimGrid does not share links exactly: a flow moves at {} byte/s instead of {}; use a version "
                    "from 3.32 on "
                    "whose network model CM02 can be set up as sim/platform_simgrid.cpp does",
                    rate.value(), expected.value()));
  }
}

}  // namespace foretrain

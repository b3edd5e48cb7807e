#include "sim/platform.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include "model/base/own_file.hpp"

namespace foretrain {

namespace {

using MakePlatform = Platform*(const Platform::Plan&);

/// Beside the program, where it has been installed with it, where it was built, or, for programs of others that use the
/// library, where systems install.
std::vector<std::filesystem::path> places_of_library() {
  const std::filesystem::path built = FORETRAIN_SIMGRID_LIBRARY;
  const std::filesystem::path program = own_file().parent_path();
  return {program / built.filename(), program / "../lib/foretrain" / built.filename(), built,
          "/usr/local/lib/foretrain" / built.filename(), "/usr/lib/foretrain" / built.filename()};
}

MakePlatform* load_library() {
  std::string problem = "not found";
  for (const std::filesystem::path& place : places_of_library()) {
    std::error_code unknown;
    if (!std::filesystem::exists(place, unknown)) continue;
    if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) {
      if (void* make = dlsym(library, "foretrain_make_platform"); make != nullptr) {
        return reinterpret_cast<MakePlatform*>(make);
      }
    }
    problem = dlerror();
  }
  throw std::runtime_error(
      fmt::format("flows meet, and SimGrid cannot be loaded: {}: {}; install SimGrid, or ask for --fidelity estimate",
                  FORETRAIN_SIMGRID_LIBRARY, problem));
}

MakePlatform& make_platform() {
  static MakePlatform* const make = load_library();
  return *make;
}

}  // namespace

void Platform::load() { make_platform(); }

std::unique_ptr<Platform> Platform::make(const Plan& plan) { return std::unique_ptr<Platform>(make_platform()(plan)); }

void check_platform() {
  // The first route has a link of its own, the next two share one, one crosses its own twice; of the last two, one has
  // three quarters of a link, and the other the rest until it can have all: (3/4) · t = 1, then 1 − t/4 more.
  const BytesPerSecond bandwidth = 450.0_GBps;
  const Bytes bytes = 450.0_MB;
  const Seconds once = bytes / bandwidth;
  const Platform::Plan plan{
      {bandwidth, bandwidth, bandwidth, bandwidth}, {{0}, {1}, {1}, {2, 2}, {3}, {3}}, {1.0, 1.0, 1.0, 1.0, 3.0, 1.0}};
  const std::unique_ptr<Platform> platform = Platform::make(plan);
  std::vector<Seconds> ended(plan.routes.size());
  platform->set_alarm(Seconds(0.0));
  platform->run([&, started = false]() mutable {
    if (!started) {
      for (const RouteIndex route : {0, 1, 2, 3, 4, 5}) platform->start(route, bytes);
      started = true;
    }
    for (const Platform::FlowId flow : platform->take_finished()) {
      ended[static_cast<std::size_t>(flow)] = platform->now();
    }
  });
  const std::array<Seconds, 6> expected = {once, 2.0 * once, 2.0 * once, 2.0 * once, once * (4.0 / 3.0), 2.0 * once};
  for (std::size_t flow = 0; flow < ended.size(); ++flow) {
    if (std::abs(ended[flow] / expected[flow] - 1.0) < 1e-6) continue;
    throw std::runtime_error(fmt::format(
        "this SimGrid does not share links exactly: a flow of {} bytes took {} s instead of {} s; use a version from "
        "3.32 on whose network model CM02 can be set up as sim/platform_simgrid.cpp does",
        bytes.value(), ended[flow].value(), expected[flow].value()));
  }
}

}  // namespace foretrain

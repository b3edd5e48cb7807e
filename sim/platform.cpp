#include "sim/platform.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include <simgrid/version.h>  // after the others: it does not include what it needs

namespace foretrain {

namespace {

namespace s4u = simgrid::s4u;
using simgrid::kernel::timer::Timer;

// Exact max–min sharing needs CM02 with an unbounded TCP window, no reverse traffic, and links without latency (CM02
// shares bandwidth in inverse proportion to latency). Dates closer than the precision are the same to SimGrid; its own
// default of 1 ns is as long as a 450-byte message on an NVLink.
constexpr std::array engine_arguments = {
    "foretrain",
    "--log=root.threshold:critical",
    "--cfg=network/model:CM02",
    "--cfg=network/TCP-gamma:1e30",
    "--cfg=network/crosstraffic:0",
#if SIMGRID_VERSION >= 40000
    "--cfg=precision/timing:1e-12",
    "--cfg=precision/work-amount:1e-9",
#else
    "--cfg=surf/precision:1e-12",
    "--cfg=maxmin/precision:1e-9",
#endif
};

#if SIMGRID_VERSION >= 40000
s4u::NetZone* make_zone(s4u::Engine& engine) { return engine.get_netzone_root()->add_netzone_empty("routes"); }
s4u::Host* make_host(s4u::NetZone& zone, const std::string& name) { return zone.add_host(name, 1.0); }
s4u::Link* make_link(s4u::NetZone& zone, const std::string& name, BytesPerSecond bandwidth) {
  return zone.add_link(name, bandwidth.value());
}
#else
s4u::NetZone* make_zone(s4u::Engine&) { return s4u::create_empty_zone("routes"); }
s4u::Host* make_host(s4u::NetZone& zone, const std::string& name) { return zone.create_host(name, 1.0); }
s4u::Link* make_link(s4u::NetZone& zone, const std::string& name, BytesPerSecond bandwidth) {
  return zone.create_link(name, bandwidth.value());
}
#endif

/// Puts back the signal handlers that SimGrid's engine replaces, so that Ctrl-C and crashes keep their usual meaning.
class SignalHandlerKeeper {
 public:
  SignalHandlerKeeper() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], nullptr, &saved_[i]);
  }
  ~SignalHandlerKeeper() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &saved_[i], nullptr);
  }
  SignalHandlerKeeper(const SignalHandlerKeeper&) = delete;
  SignalHandlerKeeper& operator=(const SignalHandlerKeeper&) = delete;

 private:
  static constexpr std::array signals = {SIGINT, SIGSEGV};
  std::array<struct sigaction, signals.size()> saved_{};
};

s4u::Engine& make_engine() {
  if (s4u::Engine::has_instance()) throw std::logic_error("SimGrid allows one simulation per process");
  const SignalHandlerKeeper keeper;
  auto arguments = engine_arguments;
  int count = static_cast<int>(arguments.size());
  std::array<char*, engine_arguments.size() + 1> argv{};
  std::ranges::transform(arguments, argv.begin(), [](const char* text) { return const_cast<char*>(text); });
  return *s4u::Engine::get_instance(&count, argv.data());
}

}  // namespace

struct Platform::Impl {
  struct Flow {
    FlowId id = 0;
    s4u::CommPtr communication;  // SimGrid drops a communication without an owner
  };
  struct HostPair {
    s4u::Host* source;
    s4u::Host* destination;
  };

  s4u::Engine& engine = make_engine();
  std::vector<HostPair> routes;
  std::vector<s4u::CommPtr> background;
  std::deque<Flow> flows;  // a deque: communications point to their entry
  std::vector<FlowId> free_flows;
  std::vector<FlowId> finished;
  Timer* alarm = nullptr;
  const std::function<void()>* wake = nullptr;
};

Platform::Platform(const Platform::Plan& plan) : impl_(std::make_unique<Impl>()) {
  s4u::NetZone* zone = make_zone(impl_->engine);
  std::vector<const s4u::Link*> links;
  for (const BytesPerSecond bandwidth : plan.links) {
    links.push_back(make_link(*zone, fmt::format("link{}", links.size()), bandwidth)->set_latency(0.0));
  }
  // Every route has a pair of hosts of its own, one of √n sources and one of √n destinations.
  std::vector<s4u::Host*> sources, destinations;
  for (std::size_t i = 0; i * i < plan.routes.size(); ++i) {
    sources.push_back(make_host(*zone, fmt::format("source{}", i)));
    destinations.push_back(make_host(*zone, fmt::format("destination{}", i)));
  }
  for (const std::vector<std::int32_t>& route : plan.routes) {
    const std::size_t number = impl_->routes.size();
    impl_->routes.push_back({sources[number / sources.size()], destinations[number % sources.size()]});
    if (route.empty()) continue;
    // Bypass routes are looked up in a map: no table of all pairs of hosts, and repeated links are kept.
    std::vector<s4u::LinkInRoute> crossed;
    crossed.reserve(route.size());
    for (const std::int32_t link : route) crossed.emplace_back(links[static_cast<std::size_t>(link)]);
    zone->add_bypass_route(impl_->routes.back().source->get_netpoint(),
                           impl_->routes.back().destination->get_netpoint(), nullptr, nullptr, crossed);
  }
  zone->seal();
  s4u::Comm::on_completion_cb([this](const s4u::Activity& activity) {
    const auto* flow = activity.get_data<Impl::Flow>();
    if (flow == nullptr) return;  // background
    impl_->finished.push_back(flow->id);
    set_alarm(now());
  });
}

Platform::~Platform() = default;

Platform::FlowId Platform::start(RouteIndex route, Bytes bytes) {
  if (impl_->free_flows.empty()) {
    impl_->free_flows.push_back(static_cast<FlowId>(impl_->flows.size()));
    impl_->flows.push_back({impl_->free_flows.back(), nullptr});
  }
  const FlowId id = impl_->free_flows.back();
  impl_->free_flows.pop_back();
  Impl::Flow& flow = impl_->flows[static_cast<std::size_t>(id)];
  const auto [source, destination] = impl_->routes[static_cast<std::size_t>(route)];
  const auto whole_bytes = static_cast<std::uint64_t>(std::max(1.0, std::round(bytes.value())));
  flow.communication = s4u::Comm::sendto_async(source, destination, whole_bytes);
  flow.communication->set_data(&flow);
  return id;
}

void Platform::start_background(RouteIndex route) {
  constexpr std::uint64_t endless = 10'000'000'000'000'000'000U;
  const auto [source, destination] = impl_->routes[static_cast<std::size_t>(route)];
  impl_->background.push_back(s4u::Comm::sendto_async(source, destination, endless));
}

int Platform::flows_in_progress() const {
  return static_cast<int>(impl_->flows.size() - impl_->free_flows.size() - impl_->finished.size());
}

std::vector<Platform::FlowId> Platform::take_finished() {
  std::vector<FlowId> finished = std::exchange(impl_->finished, {});
  std::ranges::sort(finished);
  for (const FlowId id : finished) impl_->flows[static_cast<std::size_t>(id)].communication = nullptr;
  impl_->free_flows.insert(impl_->free_flows.end(), finished.rbegin(), finished.rend());
  return finished;
}

Seconds Platform::now() const { return Seconds(s4u::Engine::get_clock()); }

void Platform::set_alarm(Seconds date) {
  date = std::max(date, now());
  if (impl_->alarm != nullptr) {
    if (impl_->alarm->get_date() == date.value()) return;
    impl_->alarm->remove();
  }
  impl_->alarm = Timer::set(date.value(), [this] {
    impl_->alarm = nullptr;
    (*impl_->wake)();
  });
}

void Platform::run(const std::function<void()>& wake) {
  impl_->wake = &wake;
  impl_->engine.run();
}

void check_platform() {
  // The first route has a link of its own, the next two share one, the last crosses its own twice.
  const BytesPerSecond bandwidth = 450.0_GBps;
  const Bytes bytes = 450.0_MB;
  const Seconds once = bytes / bandwidth;
  const Platform::Plan plan{{bandwidth, bandwidth, bandwidth}, {{0}, {1}, {1}, {2, 2}}};
  Platform platform(plan);
  std::vector<Seconds> ended(4);
  platform.set_alarm(Seconds(0.0));
  platform.run([&, started = false]() mutable {
    if (!started) {
      for (const RouteIndex route : {0, 1, 2, 3}) platform.start(route, bytes);
      started = true;
    }
    for (const Platform::FlowId flow : platform.take_finished()) {
      ended[static_cast<std::size_t>(flow)] = platform.now();
    }
  });
  const std::array<Seconds, 4> expected = {once, 2.0 * once, 2.0 * once, 2.0 * once};
  for (std::size_t flow = 0; flow < ended.size(); ++flow) {
    if (std::abs(ended[flow] / expected[flow] - 1.0) < 1e-6) continue;
    throw std::runtime_error(
        fmt::format("{} does not share links exactly: a flow of {} bytes took {} s instead of {} s; use a version from "
                    "3.32 on whose network model CM02 can be set up as sim/platform.cpp does",
                    SIMGRID_VERSION_STRING, bytes.value(), ended[flow].value(), expected[flow].value()));
  }
}

}  // namespace foretrain

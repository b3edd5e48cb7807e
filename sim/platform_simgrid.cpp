// SimGrid behind Platform, as a library of its own that is loaded when it is needed (platform.cpp).
#include "sim/platform.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Model.hpp>
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

class SimGridPlatform final : public Platform {
 public:
  explicit SimGridPlatform(const Plan& plan);
  FlowId start(RouteIndex route, Bytes bytes) override;
  void start_background(RouteIndex route) override;
  [[nodiscard]] int flows_in_progress() const override;
  std::vector<FlowId> take_finished() override;
  [[nodiscard]] Seconds now() const override;
  void set_alarm(Seconds date) override;
  void run(const std::function<void()>& wake) override;

 private:
  struct Flow {
    FlowId id = 0;
    s4u::CommPtr communication;  // SimGrid drops a communication without an owner
  };
  struct HostPair {
    s4u::Host* source;
    s4u::Host* destination;
    double weight = 1.0;
  };
  s4u::CommPtr send(RouteIndex route, std::uint64_t bytes);

  s4u::Engine& engine_ = make_engine();
  simgrid::kernel::resource::Model* network_ = nullptr;
  std::vector<HostPair> routes_;
  std::vector<s4u::CommPtr> background_;
  std::deque<Flow> flows_;  // a deque: communications point to their entry
  std::vector<FlowId> free_flows_;
  std::vector<FlowId> finished_;
  Timer* alarm_ = nullptr;
  const std::function<void()>* wake_ = nullptr;
};

SimGridPlatform::SimGridPlatform(const Plan& plan) {
  s4u::NetZone* zone = make_zone(engine_);
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
    const std::size_t number = routes_.size();
    routes_.push_back({sources[number / sources.size()], destinations[number % sources.size()],
                       plan.weights.empty() ? 1.0 : plan.weights[number]});
    if (route.empty()) continue;
    // Bypass routes are looked up in a map: no table of all pairs of hosts, and repeated links are kept.
    std::vector<s4u::LinkInRoute> crossed;
    crossed.reserve(route.size());
    for (const std::int32_t link : route) crossed.emplace_back(links[static_cast<std::size_t>(link)]);
    zone->add_bypass_route(routes_.back().source->get_netpoint(), routes_.back().destination->get_netpoint(), nullptr,
                           nullptr, crossed);
  }
  zone->seal();
  for (simgrid::kernel::resource::Model* model : engine_.get_all_models()) {
    if (model->get_name().starts_with("Network")) network_ = model;
  }
  if (network_ == nullptr) throw std::logic_error("this SimGrid has no model of networks");
  s4u::Comm::on_completion_cb([this](const s4u::Activity& activity) {
    const auto* flow = activity.get_data<Flow>();
    if (flow == nullptr) return;  // background
    finished_.push_back(flow->id);
    set_alarm(now());
  });
}

/// SimGrid divides a full link in inverse proportion to what it calls penalties. The action that has just begun is the
/// last one of its model.
s4u::CommPtr SimGridPlatform::send(RouteIndex route, std::uint64_t bytes) {
  const auto [source, destination, weight] = routes_[static_cast<std::size_t>(route)];
  s4u::CommPtr communication = s4u::Comm::sendto_async(source, destination, bytes);
  if (weight != 1.0) network_->get_started_action_set()->back().set_sharing_penalty(1.0 / weight);
  return communication;
}

Platform::FlowId SimGridPlatform::start(RouteIndex route, Bytes bytes) {
  if (free_flows_.empty()) {
    free_flows_.push_back(static_cast<FlowId>(flows_.size()));
    flows_.push_back({free_flows_.back(), nullptr});
  }
  const FlowId id = free_flows_.back();
  free_flows_.pop_back();
  Flow& flow = flows_[static_cast<std::size_t>(id)];
  const auto whole_bytes = static_cast<std::uint64_t>(std::max(1.0, std::round(bytes.value())));
  flow.communication = send(route, whole_bytes);
  flow.communication->set_data(&flow);
  return id;
}

void SimGridPlatform::start_background(RouteIndex route) {
  constexpr std::uint64_t endless = 10'000'000'000'000'000'000U;
  background_.push_back(send(route, endless));
}

int SimGridPlatform::flows_in_progress() const {
  return static_cast<int>(flows_.size() - free_flows_.size() - finished_.size());
}

std::vector<Platform::FlowId> SimGridPlatform::take_finished() {
  std::vector<FlowId> finished = std::exchange(finished_, {});
  std::ranges::sort(finished);
  for (const FlowId id : finished) flows_[static_cast<std::size_t>(id)].communication = nullptr;
  free_flows_.insert(free_flows_.end(), finished.rbegin(), finished.rend());
  return finished;
}

Seconds SimGridPlatform::now() const { return Seconds(s4u::Engine::get_clock()); }

void SimGridPlatform::set_alarm(Seconds date) {
  date = std::max(date, now());
  if (alarm_ != nullptr) {
    if (alarm_->get_date() == date.value()) return;
    alarm_->remove();
  }
  alarm_ = Timer::set(date.value(), [this] {
    alarm_ = nullptr;
    (*wake_)();
  });
}

void SimGridPlatform::run(const std::function<void()>& wake) {
  wake_ = &wake;
  engine_.run();
}

}  // namespace

}  // namespace foretrain

extern "C" foretrain::Platform* foretrain_make_platform(const foretrain::Platform::Plan& plan) {
  return std::make_unique<foretrain::SimGridPlatform>(plan).release();
}

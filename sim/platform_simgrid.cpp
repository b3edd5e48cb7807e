// The one place that knows SimGrid, set up so that flows share links max–min fairly and exactly; here stays all that
// changes between SimGrid 3.32 and 4.x. SimGrid takes longer to load than most predictions take: this is a library of
// its own, loaded when flows meet (link_sharing.cpp).
#include "sim/link_sharing.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <memory>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include <simgrid/version.h>  // after the others: it does not include what it needs

namespace foretrain {

namespace {

namespace s4u = simgrid::s4u;

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

/// Every route has one communication that never ends; it counts for as many flows as move there, or for none.
class SimGridSharing final : public LinkSharing {
 public:
  explicit SimGridSharing(const SharedLinks& links);
  void set_flows(RouteIndex route, int flows) override;
  void share() override;
  [[nodiscard]] BytesPerSecond rate(RouteIndex route) const override;

 private:
  struct Route {
    s4u::Host* source;
    s4u::Host* destination;
    int flows = 0;
    s4u::CommPtr communication = nullptr;  // SimGrid drops one without an owner
    simgrid::kernel::resource::Action* action = nullptr;
  };
  /// A link, and before which sharing it was said to have changed.
  struct Link {
    s4u::Link* link;
    std::int64_t changed = -1;
  };
  void begin(Route& route);
  void note_change(Link& link) const;

  const SharedLinks& plan_;
  s4u::Engine& engine_ = make_engine();
  simgrid::kernel::resource::Model* network_ = nullptr;
  std::int64_t shared_ = 0;
  std::vector<Link> links_;
  std::vector<Route> routes_;
};

SimGridSharing::SimGridSharing(const SharedLinks& plan) : plan_(plan) {
  s4u::NetZone* zone = make_zone(engine_);
  for (const BytesPerSecond bandwidth : plan.links) {
    links_.push_back({make_link(*zone, fmt::format("link{}", links_.size()), bandwidth)->set_latency(0.0)});
  }
  // Every route has a pair of hosts of its own, one of √n sources and one of √n destinations.
  std::vector<s4u::Host*> sources, destinations;
  for (std::size_t i = 0; i * i < plan.routes.size(); ++i) {
    sources.push_back(make_host(*zone, fmt::format("source{}", i)));
    destinations.push_back(make_host(*zone, fmt::format("destination{}", i)));
  }
  for (const std::vector<std::int32_t>& route : plan.routes) {
    const std::size_t number = routes_.size();
    routes_.push_back({sources[number / sources.size()], destinations[number % sources.size()]});
    if (route.empty()) continue;
    // Bypass routes are looked up in a map: no table of all pairs of hosts, and repeated links are kept.
    std::vector<s4u::LinkInRoute> crossed;
    crossed.reserve(route.size());
    for (const std::int32_t link : route) crossed.emplace_back(links_[static_cast<std::size_t>(link)].link);
    zone->add_bypass_route(routes_.back().source->get_netpoint(), routes_.back().destination->get_netpoint(), nullptr,
                           nullptr, crossed);
  }
  zone->seal();
  for (simgrid::kernel::resource::Model* model : engine_.get_all_models()) {
    if (model->get_name().starts_with("Network")) network_ = model;
  }
  if (network_ == nullptr) throw std::runtime_error("this SimGrid has no model of networks");
  engine_.seal_platform();
}

/// The action that has just begun is the last one of its model.
void SimGridSharing::begin(Route& route) {
  constexpr std::uint64_t endless = 10'000'000'000'000'000'000U;
  route.communication = s4u::Comm::sendto_init(route.source, route.destination);
  route.communication->set_payload_size(endless)->detach();
  route.action = &network_->get_started_action_set()->back();
}

/// SimGrid divides a full link in inverse proportion to what it calls penalties; an action without one is at rest.
/// Where one begins to move on a link that awaits its turn already, SimGrid overlooks the others that it crosses.
void SimGridSharing::set_flows(RouteIndex index, int flows) {
  Route& route = routes_[static_cast<std::size_t>(index)];
  if (route.flows == flows) return;
  if (route.action == nullptr) begin(route);
  route.flows = flows;
  route.action->set_sharing_penalty(flows == 0 ? 0.0 : 1.0 / (plan_.weight(index) * flows));
  if (flows == 0) return;
  for (const std::int32_t link : plan_.routes[static_cast<std::size_t>(index)]) {
    note_change(links_[static_cast<std::size_t>(link)]);
  }
}

/// A link whose bandwidth is set is shared anew, with all that it is joined to, even where it stays the same.
void SimGridSharing::note_change(Link& link) const {
  if (std::exchange(link.changed, shared_) != shared_) link.link->set_bandwidth(link.link->get_bandwidth());
}

/// SimGrid's clock stands still.
void SimGridSharing::share() {
  network_->next_occurring_event(0.0);
  ++shared_;
}

BytesPerSecond SimGridSharing::rate(RouteIndex index) const {
  const Route& route = routes_[static_cast<std::size_t>(index)];
  return BytesPerSecond(route.action->get_rate() / route.flows);
}

}  // namespace

}  // namespace foretrain

extern "C" foretrain::LinkSharing* foretrain_share_links(const foretrain::SharedLinks& links) {
  return std::make_unique<foretrain::SimGridSharing>(links).release();
}

// The one place that knows SimGrid, set up so that flows share links max–min fairly and exactly; here stays all that
// changes between SimGrid 3.32 and 4.x. SimGrid takes longer to load than most predictions take: this is a library of
// its own, loaded when several links bound flows that meet (link_sharing.cpp).
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
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/base/hash.hpp"

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
  if (s4u::Engine::has_instance())
    throw std::runtime_error("SimGrid is in use by others in this process, which can have one engine of it");
  const SignalHandlerKeeper keeper;
  auto arguments = engine_arguments;
  int count = static_cast<int>(arguments.size());
  std::array<char*, engine_arguments.size() + 1> argv{};
  std::ranges::transform(arguments, argv.begin(), [](const char* text) { return const_cast<char*>(text); });
  return *s4u::Engine::get_instance(&count, argv.data());
}

simgrid::kernel::resource::Model& network_of(const s4u::Engine& engine) {
  for (simgrid::kernel::resource::Model* model : engine.get_all_models()) {
    if (model->get_name().starts_with("Network")) return *model;
  }
  throw std::runtime_error("this SimGrid has no model of networks");
}

using Action = simgrid::kernel::resource::Action;

/// The process's one platform: links numbered from zero, and communications that never end over lists of links. Between
/// answers all of these are at rest, and nothing is left to be shared: no answer hangs on those before.
class Pool {
 public:
  static Pool& of_process() {
    static Pool& pool = *std::make_unique<Pool>().release();  // SimGrid's own statics may go before it
    return pool;
  }

  void share(const SharingSystem::Folded& system, std::span<RouteRate> moving);

 private:
  struct Connection {
    s4u::Host* source;
    s4u::Host* destination;
    s4u::CommPtr communication = nullptr;  // SimGrid drops one without an owner
    Action* action = nullptr;
  };
  /// Over one list of links; as many as one answer has needed.
  struct Connections {
    std::vector<Connection> all;
    std::size_t borrowed = 0;
  };
  struct HashOfLinks {
    std::size_t operator()(const std::vector<std::int32_t>& links) const { return hash_of(links); }
  };
  s4u::Link& link(std::size_t number);
  /// The action of one over these links that nobody has borrowed; at rest.
  Action& borrow(const std::vector<std::int32_t>& links);
  /// All that were borrowed come to rest.
  void take_back();
  /// SimGrid's clock stands still.
  void share_out() { network_.next_occurring_event(0.0); }
  Connection new_connection(const std::vector<std::int32_t>& links);
  void start(Connection& connection);
  void forget_communications();

  s4u::Engine& engine_ = make_engine();
  s4u::NetZone& zone_ = *make_zone(engine_);
  simgrid::kernel::resource::Model& network_ = network_of(engine_);
  std::vector<s4u::Link*> links_;
  std::vector<std::int64_t> told_;  ///< by link: before which answer its bandwidth was
  std::int64_t answers_ = 0;
  std::vector<s4u::Host*> sources_, destinations_;
  std::unordered_map<std::vector<std::int32_t>, Connections, HashOfLinks> connections_;
  std::vector<Connections*> borrowed_;
  std::size_t made_ = 0;            ///< connections, each between a pair of hosts of its own
  std::size_t communications_ = 0;  ///< that are kept
};

/// The zone stays open for more links and hosts, so that each is sealed by itself.
s4u::Link& Pool::link(std::size_t number) {
  while (links_.size() <= number) {
    links_.push_back(make_link(zone_, fmt::format("link{}", links_.size()), 1.0_GBps)->set_latency(0.0)->seal());
    told_.push_back(-1);
  }
  return *links_[number];
}

/// The n-th has the n-th pair of an ever larger square of sources and destinations. Bypass routes are looked up in a
/// map: no table of all pairs of hosts, and repeated links are kept.
Pool::Connection Pool::new_connection(const std::vector<std::int32_t>& links) {
  const std::size_t number = made_++;
  if (number == sources_.size() * sources_.size()) {
    sources_.push_back(make_host(zone_, fmt::format("source{}", sources_.size()))->seal());
    destinations_.push_back(make_host(zone_, fmt::format("destination{}", destinations_.size()))->seal());
  }
  const std::size_t last = sources_.size() - 1, place = number - last * last;
  Connection made{sources_[place <= last ? last : place - last - 1], destinations_[place <= last ? place : last]};
  std::vector<s4u::LinkInRoute> crossed;
  crossed.reserve(links.size());
  for (const std::int32_t number_of_link : links) crossed.emplace_back(&link(static_cast<std::size_t>(number_of_link)));
  zone_.add_bypass_route(made.source->get_netpoint(), made.destination->get_netpoint(), nullptr, nullptr, crossed);
  return made;
}

/// The action that has just begun is the last one of its model. It would never get more than its links have now.
void Pool::start(Connection& connection) {
  constexpr std::uint64_t endless = 10'000'000'000'000'000'000U;
  connection.communication = s4u::Comm::sendto_init(connection.source, connection.destination);
  connection.communication->set_payload_size(endless)->detach();
  connection.action = &network_.get_started_action_set()->back();
  connection.action->set_bound(-1.0);
  connection.action->set_sharing_penalty(0.0);
  ++communications_;
}

Action& Pool::borrow(const std::vector<std::int32_t>& links) {
  Connections& connections = connections_[links];
  if (connections.borrowed == connections.all.size()) connections.all.push_back(new_connection(links));
  Connection& next = connections.all[connections.borrowed++];
  if (next.communication == nullptr) start(next);
  borrowed_.push_back(&connections);
  return *next.action;
}

void Pool::take_back() {
  constexpr std::size_t most_communications = 30'000;  // some 100 MB
  for (Connections* connections : borrowed_) {
    while (connections->borrowed > 0) connections->all[--connections->borrowed].action->set_sharing_penalty(0.0);
  }
  borrowed_.clear();
  if (communications_ > most_communications) forget_communications();
  share_out();
}

void Pool::forget_communications() {
  for (auto& [links, connections] : connections_) {
    for (Connection& connection : connections.all) {
      if (connection.communication == nullptr) continue;
      connection.communication->cancel();
      connection.communication = nullptr;
    }
  }
  communications_ = 0;
}

/// A link whose bandwidth is set is shared anew, with all that it is joined to, even where it stays the same. SimGrid
/// divides a full link in inverse proportion to what it calls penalties; an action without one is at rest. Where one
/// begins to move on a link that awaits its turn already, SimGrid overlooks the others that it crosses: so all of them
/// are reported first, in their order, which a communication that has just been made can then not change.
void Pool::share(const SharingSystem::Folded& system, std::span<RouteRate> moving) {
  const auto crossed_by = [&](const RouteRate& route) -> const auto& {
    return system.crossings[static_cast<std::size_t>(route.route)];
  };
  ++answers_;
  for (const RouteRate& route : moving) {
    for (const SharingSystem::Folded::Crossing& crossing : crossed_by(route)) {
      const auto number = static_cast<std::size_t>(crossing.link);
      s4u::Link& crossed = link(number);
      if (std::exchange(told_[number], answers_) != answers_) crossed.set_bandwidth(system.bandwidth[number].value());
    }
  }
  std::vector<const Action*> actions;
  std::vector<std::int32_t> links;
  for (const RouteRate& route : moving) {
    links.clear();
    for (const auto [number, times] : crossed_by(route))
      links.insert(links.end(), static_cast<std::size_t>(times), number);
    Action& action = borrow(links);
    action.set_sharing_penalty(1.0 / (system.weight[static_cast<std::size_t>(route.route)] * route.flows));
    actions.push_back(&action);
  }
  share_out();
  for (std::size_t i = 0; i < moving.size(); ++i) {
    moving[i].rate = BytesPerSecond(actions[i]->get_rate() / moving[i].flows);
  }
  take_back();
}

}  // namespace

}  // namespace foretrain

extern "C" void foretrain_share_links(const foretrain::SharingSystem::Folded& system,
                                      std::span<foretrain::RouteRate> moving) {
  foretrain::Pool::of_process().share(system, moving);
}

#include "model/collectives/library.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "model/collectives/link_load.hpp"

namespace foretrain {

namespace {

class LossyPhases {
 public:
  LossyPhases(std::vector<LoweredCollective::Phase>& phases, const Algorithm& algorithm, const CollectiveCall& call,
              const Library& library, const Topology& topology)
      : phases_(phases), algorithm_(algorithm), call_(call), library_(library), topology_(topology), load_(topology) {}

  void add() {
    const bool by_messages = algorithm_.runs == Algorithm::Runs::messages || is_exchange(call_.operation);
    if (by_messages) {
      add_messages();
    } else {
      lose_on_links(algorithm_.runs == Algorithm::Runs::rings ? Library::ring_message : library_.in_switch_message());
      algorithm_.runs == Algorithm::Runs::rings ? add_rings() : add_switches();
    }
  }

 private:
  void lose_on_links(Bytes message) {
    TrafficBuilder builder(topology_, library_.constants(), message, &library_.hosts());
    const bool in_switches = algorithm_.runs == Algorithm::Runs::switches && library_.slowest().in_network;
    const auto engine = in_switches ? TrafficBuilder::Engine::switches : TrafficBuilder::Engine::kernels;
    for (LoweredCollective::Phase& phase : phases_) {
      for (Flow& flow : phase.flows) flow = builder.carried(flow, engine);
    }
  }

  /// The time of the phase's slowest hop.
  [[nodiscard]] Seconds step(const LoweredCollective::Phase& phase, const LibraryProtocol& protocol) const {
    Seconds longest = protocol.step;
    for (const Flow& flow : phase.flows) {
      if (topology_.node_of(flow.source) == topology_.node_of(flow.destination)) continue;
      const Seconds latency = topology_.latency(flow.source, flow.destination);
      longest = std::max(longest, library_.network_step(protocol, Seconds(0.0), latency));
    }
    return longest;
  }

  /// Once, whatever the number of phases.
  void add_once(Seconds time) {
    if (!phases_.empty()) phases_.front().latency += time / static_cast<double>(phases_.front().repeat);
  }

  void add_messages() {
    // Where messages change rails is the transport's choice, of exchanges: a schedule of its own says its way, and
    // waits for each of its phases.
    const bool exchanges = is_exchange(call_.operation);
    for (LoweredCollective::Phase& phase : phases_) {
      const int others = peers(phase.flows);
      if (library_.in_one_node()) {
        phase.latency = library_.launch() +
                        (exchanges ? library_.messages(largest_message(phase), others)
                                   : library_.set_up(others) + library_.step_in_node(LibraryProtocolKind::simple));
        continue;
      }
      if (exchanges) phase.flows = forwarded_over_rails(std::move(phase.flows), topology_);
      const bool at_once = exchanges && phases_.size() == 1;
      phase.latency =
          library_.launch() + step(phase, library_.simple()) +
          (at_once ? library_.exchange_between_nodes(largest_message(phase), others) : library_.set_up(others));
    }
    const std::vector<Seconds> least = one_message_alone();
    lose_on_links(library_.largest_message());
    Seconds busy;
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      const Seconds busiest = load_.busiest(phases_[i].flows);
      busy += busiest * static_cast<double>(phases_[i].repeat);
      if (busiest >= least[i] || busiest <= Seconds(0.0)) continue;
      for (Flow& flow : phases_[i].flows) flow.bytes *= least[i] / busiest;
    }
    if (!library_.in_one_node()) return;
    const bool all_to_all = call_.operation == CollectiveOperation::all_to_all;
    add_once(all_to_all ? library_.exchange_in_node(busy) : library_.local_copies());
  }

  static Bytes largest_message(const LoweredCollective::Phase& phase) {
    Bytes largest;
    for (const Flow& flow : phase.flows) largest = std::max(largest, flow.bytes / flow.weight);
    return largest;
  }

  /// How long the channels of a peer need for a phase's largest message where everybody has one, inside a node.
  [[nodiscard]] std::vector<Seconds> one_message_alone() const {
    std::vector<Seconds> times(phases_.size(), Seconds(0.0));
    if (library_.slowest().node_count() > 1 || !library_.slowest().nvlink) return times;
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      if (peers(phases_[i].flows) > 1) continue;
      for (const Flow& flow : phases_[i].flows) {
        times[i] = std::max(times[i], flow.bytes / library_.peer_bandwidth(flow.bytes));
      }
    }
    return times;
  }

  /// The most that one endpoint sends to or receives from.
  static int peers(const std::vector<Flow>& flows) {
    std::unordered_map<EndpointId, double> sends, receives;
    double most = 0.0;
    for (const Flow& flow : flows) {
      most = std::max({most, sends[flow.source] += flow.weight, receives[flow.destination] += flow.weight});
    }
    return static_cast<int>(most);
  }

  void add_rings() {
    Seconds busy;
    int steps = 0;
    for (const LoweredCollective::Phase& phase : phases_) {
      busy += load_.busiest(phase.flows) * static_cast<double>(phase.repeat);
      steps += phase.repeat;
    }
    if (steps == 0) return;
    const RingCost cost =
        library_.in_one_node() ? library_.ring_in_node(busy, rings_of_library(), steps) : between_nodes(busy);
    const Seconds each = cost.latency / static_cast<double>(steps);
    for (LoweredCollective::Phase& phase : phases_) {
      phase.latency = each;
      for (Flow& flow : phase.flows) flow.bytes /= cost.share;
    }
  }

  /// How long links would be busy with the library's own rings.
  [[nodiscard]] Seconds rings_of_library() {
    TrafficBuilder builder(topology_, library_.constants(), Library::ring_message, &library_.hosts());
    for (const GroupLayout& layout : library_.layouts()) builder.add_ring(layout, call_.operation);
    return load_.busiest(builder.flows()) * (call_.size / Bytes(1.0));
  }

  /// Under the fastest protocol.
  [[nodiscard]] RingCost between_nodes(Seconds busy) const {
    const bool chains = has_root(call_.operation);
    RingCost best{.protocol = "", .latency = Seconds(std::numeric_limits<double>::infinity())};
    for (const LibraryProtocol& protocol : library_.protocols()) {
      RingCost cost{protocol.name, library_.launch(), protocol.share};
      if (!chains) cost.latency += library_.ring_latency(protocol);
      for (const LoweredCollective::Phase& phase : phases_) {
        if (chains) cost.latency += step(phase, protocol) * static_cast<double>(phase.repeat);
      }
      if (cost.latency + busy / cost.share < best.latency + busy / best.share) best = cost;
    }
    return best;
  }

  void add_switches() {
    for (LoweredCollective::Phase& phase : phases_) phase.latency = step(phase, library_.simple());
    const bool inside = library_.slowest().in_network;
    add_once(library_.launch() + (inside ? Seconds(library_.constants().nvls_us * 1e-6) : Seconds(0.0)));
  }

  std::vector<LoweredCollective::Phase>& phases_;
  const Algorithm& algorithm_;
  const CollectiveCall& call_;
  const Library& library_;
  const Topology& topology_;
  LinkLoad load_;
};

}  // namespace

void add_losses(std::vector<LoweredCollective::Phase>& phases, const Algorithm& algorithm, const CollectiveCall& call,
                const Library& library, const Topology& topology) {
  if (!library.version().none()) LossyPhases(phases, algorithm, call, library, topology).add();
}

}  // namespace foretrain

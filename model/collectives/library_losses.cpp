#include <algorithm>
#include <unordered_map>
#include <utility>

#include "model/base/number.hpp"
#include "model/collectives/library.hpp"
#include "model/collectives/link_load.hpp"

namespace foretrain {

namespace {

/// The time of the phase's slowest hop between nodes, or of a step inside one.
Seconds slowest_step(const LoweredCollective::Phase& phase, const Library& library, const Topology& topology) {
  const LibraryProtocol protocol = library.simple();
  Seconds longest = protocol.step;
  for (const Flow& flow : phase.flows) {
    if (topology.node_of(flow.source) == topology.node_of(flow.destination)) continue;
    const Seconds latency = topology.latency(flow.source, flow.destination);
    longest = std::max(longest, library.network_step(protocol, Seconds(0.0), latency));
  }
  return longest;
}

int peers_of(const std::vector<Flow>& flows) {
  std::unordered_map<EndpointId, double> sends, receives;
  double most = 0.0;
  for (const Flow& flow : flows) {
    most = std::max({most, sends[flow.source] += flow.weight, receives[flow.destination] += flow.weight});
  }
  return static_cast<int>(most);
}

}  // namespace

void add_losses(std::vector<LoweredCollective::Phase>& phases, const CollectiveCall& call, const Topology& topology,
                const Calibration& calibration) {
  if (topology.nccl().none() || phases.empty()) return;
  const Library library(call, topology, calibration);
  TrafficBuilder builder(topology, library.constants(), library.largest_message(), &library.hosts());
  LinkLoad load(topology);
  // The transport chooses where messages of exchanges change rails: a schedule of its own says its way, and waits
  // for each of its phases.
  const bool exchanges = is_exchange(call.operation), at_once = exchanges && phases.size() == 1;
  Seconds busy;
  for (LoweredCollective::Phase& phase : phases) {
    const int peers = peers_of(phase.flows);
    Bytes message;  // the largest
    for (const Flow& flow : phase.flows) message = std::max(message, flow.bytes / flow.weight);
    phase.latency = library.launch();
    if (library.in_one_node()) {
      phase.latency += exchanges ? library.messages(message, peers)
                                 : library.set_up(peers) + library.step_in_node(LibraryProtocolKind::simple);
    } else {
      if (exchanges) phase.flows = forwarded_over_rails(std::move(phase.flows), topology);
      phase.latency += slowest_step(phase, library, topology) +
                       (at_once ? library.exchange_between_nodes(message, peers) : library.set_up(peers));
    }
    // Time that the channels of a peer need for the largest message if every peer has one, inside a node.
    const bool alone = library.in_one_node() && library.slowest().nvlink && peers <= 1 && message > Bytes(0.0);
    const Seconds least = alone ? message / library.peer_bandwidth(message) : Seconds(0.0);
    for (Flow& flow : phase.flows) flow = builder.carried(flow);
    const Seconds busiest = load.busiest(phase.flows);
    busy += busiest * number(phase.repeat);
    if (busiest >= least || busiest <= Seconds(0.0)) continue;
    for (Flow& flow : phase.flows) flow.bytes *= least / busiest;
  }
  if (!library.in_one_node()) return;
  const bool all_to_all = call.operation == CollectiveOperation::all_to_all;
  phases.front().latency +=
      (all_to_all ? library.exchange_in_node(busy) : library.local_copies()) / number(phases.front().repeat);
}

}  // namespace foretrain

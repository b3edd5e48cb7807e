// Collectives as NCCL carries them out: the fastest of what it would try, under the protocols LL, LL128 and Simple.
//
//   all-reduce                    rings; trees between nodes; the nodes' switches (NVLS), with trees between nodes;
//                                 the network's switches (CollNet), where cluster.network says so
//   all-gather, reduce-scatter    rings; parallel trees (PAT). The network's switches
//   broadcast, reduce             rings
//   all-to-all, send-receive      messages between pairs, over the receiver's rail (PXN)
//
//   between nodes   launch + steps · step time(protocol) + bytes / (bandwidth · share(protocol))
//   inside one      Library::ring_in_node, under the protocol that NCCL's own model of itself prefers
//
// The bandwidth is that of the busiest link when NCCL's channels are laid over the topology (traffic.cpp): rings over
// all NVLink lanes or switch ports, every NIC used. Step counts: src/graph/tuning.cc of NCCL.

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/hash.hpp"
#include "model/base/reads.hpp"
#include "model/base/session.hpp"
#include "model/collectives/algorithm.hpp"
#include "model/collectives/exchange.hpp"
#include "model/collectives/library.hpp"
#include "model/collectives/link_load.hpp"
#include "model/collectives/network_effects.hpp"
#include "model/collectives/traffic.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

// From which version on. Release notes: 2.4.2 (trees), 2.6.4 (CollNet), 2.18.1 (NVLS between nodes; inside before);
// 2.20.3 has gathers and scatters by CollNet (src/graph/tuning.cc, iallgather; release notes of SHARP 3.5.2).
constexpr NcclVersion trees_since{2, 4}, network_switches_since{2, 6}, node_switches_since{2, 17},
    node_switch_trees_since{2, 18}, network_gathers_since{2, 20};

/// Link load of one algorithm, per byte.
struct Load {
  Seconds time;  ///< of the busiest link, or of the slowest socket
  std::shared_ptr<const std::vector<Flow>> flows;
};

/// Bytes that groups put on a network's links for one byte in one way, whatever the size: a sweep asks for many sizes.
struct TrafficKey {
  using Way = TrafficBuilder::Way;
  struct Traffic {
    std::vector<Flow> flows;
    Seconds time;   ///< as in Load
    ReadSet reads;  ///< the constants that it used
  };
  using Value = const Traffic;
  std::uint64_t network;  ///< the topology's serial number
  CollectiveConstants constants;
  TrackedNumber sockets;  ///< as hosts copy
  RankGroups groups;
  int ranks;  ///< as in CollectiveCall
  CollectiveOperation operation;
  Way way;
  Bytes message;

  bool operator==(const TrafficKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(network, groups.hash(), ranks, operation, way, message); }
  [[nodiscard]] std::size_t bytes(const Traffic& traffic) const {
    return sizeof(TrafficKey) + traffic.flows.size() * sizeof(Flow);
  }
};

struct Candidate {
  std::string name;
  Seconds latency;
  const Load* traffic = nullptr;
  double share = 1.0;

  Seconds time(Bytes size) const { return latency + traffic->time * (size / Bytes(1.0)) / share; }
};

/// The library's name of what the call names: its rings are all its channels, in both directions, whatever the user
/// calls them. Automatic: it has none.
SyncAlgorithm name_in_library(const CollectiveCall& call) {
  using enum SyncAlgorithm;
  const SyncAlgorithm named = call.algorithm;
  if (named == double_tree || named == in_network) return named;
  const bool rings = named == ring || named == multi_ring || named == bidirectional_ring ||
                     (named == naive && is_exchange(call.operation));
  return rings ? ring : automatic;
}

class AutomaticCollective {
 public:
  AutomaticCollective(const CollectiveCall& call, const Topology& topology, const Calibration& calibration)
      : call_(call), topology_(topology), library_(call, topology, calibration), load_(topology) {}

  LoweredCollective lower() { return lower(fastest(expected())); }

  /// The fastest of those that a name of the library stands for.
  std::optional<LoweredCollective> lower(SyncAlgorithm named) {
    const std::vector<Candidate> own = candidates(named);
    if (own.empty()) return std::nullopt;
    LoweredCollective lowered = lower(fastest(own));
    lowered.chosen_algorithm = std::string(name(call_.algorithm));
    return lowered;
  }

  Seconds time() { return fastest(expected()).time(call_.size); }

 private:
  using Way = TrafficKey::Way;

  LoweredCollective lower(const Candidate& best) const {
    LoweredCollective::Phase phase{.latency = best.latency, .flows = *best.traffic->flows, .repeat = 1};
    const double factor = (call_.size / Bytes(1.0)) / best.share;
    for (Flow& flow : phase.flows) flow.bytes *= factor;
    if (call_.operation == CollectiveOperation::send_receive) add_headers(phase, topology_);
    return {.chosen_algorithm = best.name, .phases = {std::move(phase)}};
  }

  [[nodiscard]] const Candidate& fastest(const std::vector<Candidate>& candidates) const {
    return *std::ranges::min_element(candidates, {},
                                     [&](const Candidate& candidate) { return candidate.time(call_.size); });
  }

  /// Candidates of one name, so that no constant of another is read; all with `automatic`.
  std::vector<Candidate> candidates(SyncAlgorithm named) {
    using enum SyncAlgorithm;
    const auto wanted = [named](SyncAlgorithm one) { return named == automatic || named == one; };
    std::vector<Candidate> candidates;
    if (is_exchange(call_.operation)) {
      main_ = direct_traffic();
      candidates.push_back(direct(main_));
    } else if (named != in_network) {
      main_ = traffic(Way::rings, Library::ring_message);
      if (wanted(ring)) add_rings(candidates);
      if (named == automatic && library_.has_parallel_trees()) candidates.push_back(parallel_trees(main_));
    }
    if (call_.operation == all_reduce && wanted(double_tree)) add_trees(candidates);
    if (call_.operation == all_reduce && wanted(in_network)) add_node_switches(candidates);
    if (wanted(in_network) && network_reduces()) {
      network_ = traffic(Way::network_switches, library_.in_switch_message());
      candidates.push_back(in_network_switches(network_));
    }
    return candidates;
  }

  /// Inside a node NCCL takes what it expects to be fastest, its switches or its rings; between nodes the fastest.
  std::vector<Candidate> expected() {
    std::vector<Candidate> all = candidates(SyncAlgorithm::automatic);
    const auto in_switches = [this](const Candidate& candidate) { return candidate.traffic == &in_network_; };
    if (library_.in_one_node() && !library_.version().none() && std::ranges::any_of(all, in_switches)) {
      const bool expected = library_.expects_switches(busy(main_));
      std::erase_if(all, [&](const Candidate& candidate) { return in_switches(candidate) != expected; });
    }
    return all;
  }

  void add_rings(std::vector<Candidate>& candidates) {
    if (!library_.in_one_node()) {
      for (const LibraryProtocol& protocol : library_.protocols()) candidates.push_back(ring(main_, protocol));
      return;
    }
    const RingCost cost = library_.ring_in_node(busy(main_));
    candidates.push_back({std::string("ring/") + cost.protocol, cost.latency, &main_, cost.share});
  }

  void add_trees(std::vector<Candidate>& candidates) {
    if (library_.in_one_node() || !knows(trees_since)) return;
    tree_ = traffic(Way::trees, Library::tree_message);
    for (const LibraryProtocol& protocol : library_.protocols()) candidates.push_back(tree_of(tree_, main_, protocol));
  }

  void add_node_switches(std::vector<Candidate>& candidates) {
    const bool in_switches = std::ranges::all_of(library_.layouts(), &GroupLayout::in_network);
    if (!in_switches || !knows(library_.in_one_node() ? node_switches_since : node_switch_trees_since)) return;
    in_network_ = traffic(Way::node_switches, library_.in_switch_message());
    candidates.push_back(in_switch(in_network_));
  }

  [[nodiscard]] bool knows(NcclVersion since) const { return library_.version().none() || library_.version() >= since; }

  /// CollNet: where the description of the network has switches that reduce, NCCL is taken to be set to use them
  /// (NCCL_COLLNET_ENABLE and the network's plugin). It needs several nodes, for gathers and scatters a card for each
  /// GPU (collNetHeadsUniqueNum, src/graph/tuning.cc).
  [[nodiscard]] bool network_reduces() const {
    if (!knows(network_switches_since) || !std::ranges::all_of(library_.layouts(), &GroupLayout::network_reduces)) {
      return false;
    }
    if (call_.operation == all_reduce) return true;
    return has_parts(call_.operation) && knows(network_gathers_since) && one_rank_for_each_card();
  }

  [[nodiscard]] bool one_rank_for_each_card() const {
    return std::ranges::all_of(slowest().nodes, [&](const GroupLayout::NodePart& part) {
      std::set<int> cards;
      return std::ranges::all_of(part.ranks,
                                 [&](int rank) { return cards.insert(topology_.card_of_gpu(rank)).second; });
    });
  }

  Load traffic(Way way, Bytes message) {
    const TrafficKey key{topology_.serial(),
                         library_.constants(),
                         library_.hosts().pageable_copy_gbps,
                         call_.groups,
                         call_.ranks,
                         call_.operation,
                         way,
                         message};
    const auto known = session().known(key, [&] {
      const ReadScope reading;
      TrafficBuilder builder(topology_, library_.constants(), message, &library_.hosts());
      for (const GroupLayout& layout : library_.layouts()) builder.add(way, layout, call_.operation);
      std::vector<Flow> flows = builder.flows();
      const Seconds time = load_.busiest(flows);
      return TrafficKey::Traffic{std::move(flows), time, reads_so_far()};
    });
    note_reads(known->reads);
    return {known->time, {known, &known->flows}};
  }

  Load direct_traffic() {
    TrafficBuilder builder(topology_, library_.constants(), library_.largest_message(), &library_.hosts());
    TrafficBuilder uneven = builder;
    const bool exchanges = call_.operation == CollectiveOperation::all_to_all && call_.size > Bytes(0.0);
    const std::size_t members = call_.groups.front().size();
    for (std::size_t group = 0; group < call_.groups.size(); ++group) {
      const std::vector<int>& ranks = call_.groups[group];
      if (!exchanges) {
        builder.add_send_receive(ranks);
        continue;
      }
      const std::vector<Flow> even = exchange_flows(ranks, ExchangeParts(call_, ranks, topology_), topology_);
      builder.add_exchange(even, call_.size);
      if (call_.tokens.imbalance <= 1.0) continue;
      uneven.add_exchange(unevenly(even, ranks, group % members, call_.tokens, topology_), call_.size);
    }
    std::vector<Flow> flows = builder.flows();
    // Which rank is the hottest changes from layer to layer, and all wait for it: each link is as busy as the busiest.
    const std::vector<Flow> hot = uneven.flows();
    const double longer = hot.empty() ? 1.0 : std::max(1.0, load_.busiest(hot) / load_.busiest(flows));
    for (Flow& flow : flows) flow.bytes *= longer;
    const Seconds time = load_.busiest(flows);
    return {time, std::make_shared<const std::vector<Flow>>(std::move(flows))};
  }

  /// From or to one rank, pieces pass one node after the other.
  Candidate ring(const Load& traffic, const LibraryProtocol& protocol) const {
    const double passed_on = has_root(call_.operation) ? slowest().node_count - 2.0 : 0.0;
    Candidate ring{std::string("ring/") + protocol.name, library_.launch() + library_.ring_latency(protocol), &traffic,
                   protocol.share};
    ring.latency += first_pieces(ring, passed_on, library_.pieces(protocol.kind));
    return ring;
  }

  /// Two trees that each carry half the message. Over two or three nodes their NICs would carry less than a ring's. But
  /// NCCL runs the trees over the ring's channels, at tree_efficiency of its bandwidth and 2 bytes for each byte
  /// (src/graph/tuning.cc). 16 A100 on two nodes stay at the ring's 100 GB/s of bus bandwidth (vTrain, tensor 16).
  Candidate tree_of(const Load& traffic, const Load& ring_traffic, const LibraryProtocol& protocol) const {
    const double n = slowest().ranks;
    const Seconds over_channels = ring_traffic.time * (n / (n - 1.0)) / library_.constants().tree_efficiency;
    const Seconds up = protocol.step * static_cast<double>(slowest().largest_node - 1) +
                       library_.tree_step(protocol, protocol.step) * library_.levels();
    Candidate tree{std::string("tree/") + protocol.name, library_.launch() + 2.0 * up, &traffic,
                   protocol.share * std::min(1.0, traffic.time / over_channels)};
    tree.latency += first_pieces(tree, 2.0 * library_.levels() - 1.0, library_.pieces(protocol.kind));
    return tree;
  }

  /// A node sends a piece on when all of it has come over the network, so that each of the ways up and down but the
  /// first begins a piece later. In a node's switches the way down does.
  static Seconds first_pieces(const Candidate& tree, double ways, Bytes pieces) {
    return tree.traffic->time * (ways * (pieces / Bytes(1.0)) / tree.share);
  }

  /// PAT ("parallel aggregated trees"): a logarithmic number of messages on the way, and a part that still grows with
  /// the ranks; 3/4 of the bus bandwidth, of which half is for the data. Source: NCCL, src/graph/tuning.cc,
  /// NCCL_ALGO_PAT.
  Candidate parallel_trees(const Load& traffic) const {
    const double n = slowest().ranks;
    const Seconds step = library_.longest_step(library_.simple(), Seconds(0.0));
    const Seconds of_ranks = Seconds(library_.constants().parallel_tree_us * 1e-6) * n;
    return {"pat/Simple", library_.launch() + step / 3.5 * library_.levels() + of_ranks, &traffic,
            0.75 * 0.5 * (n - 1.0) / n};
  }

  [[nodiscard]] Seconds switch_set_up() const { return Seconds(library_.constants().nvls_us * 1e-6); }

  Candidate in_switch(const Load& traffic) const {
    Candidate candidate{"nvls", library_.launch() + switch_set_up(), &traffic};
    candidate.latency += first_pieces(candidate, library_.in_one_node() ? 2.0 : 1.0, library_.switch_pieces());
    if (slowest().node_count > 1) {
      candidate.name = "nvls_tree";
      candidate.latency += 2.0 * library_.levels() * library_.tree_step(library_.simple(), library_.simple().step);
      // Two nodes' first pieces are in the bandwidth that their sweeps show.
      candidate.latency += first_pieces(candidate, 2.0 * (library_.levels() - 1.0), library_.switch_tree_pieces());
    }
    return candidate;
  }

  /// One way up to the network's switches and one down, whatever the number of nodes; before and after, the nodes'.
  Candidate in_network_switches(const Load& traffic) const {
    const LibraryProtocol simple = library_.simple();
    const bool inside = call_.operation == all_reduce && slowest().in_network;
    const Seconds at_both_ends = inside ? switch_set_up() : simple.step * (slowest().largest_node > 1 ? 2.0 : 0.0);
    return {"collnet", library_.launch() + at_both_ends + 2.0 * library_.longest_step(simple, Seconds(0.0)), &traffic};
  }

  Candidate direct(const Load& traffic) const {
    const bool exchanges = call_.operation == all_to_all;
    const int peers = exchanges ? slowest().ranks - 1 : 1;
    const Bytes message = exchanges ? call_.size / static_cast<double>(peers + 1) : call_.size;
    Candidate candidate{"direct", library_.launch(), &traffic};
    if (!library_.in_one_node()) {
      candidate.latency +=
          library_.exchange_between_nodes(message, peers) + library_.longest_step(library_.simple(), Seconds(0.0));
      return candidate;
    }
    candidate.latency += library_.messages(message, peers);
    if (exchanges) {
      candidate.latency += library_.exchange_in_node(busy(traffic));
    } else if (slowest().nvlink) {
      candidate.share = std::min(1.0, traffic.time / (Bytes(1.0) / library_.peer_bandwidth(call_.size)));
    }
    return candidate;
  }

  [[nodiscard]] Seconds busy(const Load& traffic) const { return traffic.time * (call_.size / Bytes(1.0)); }

  [[nodiscard]] const GroupLayout& slowest() const { return library_.slowest(); }

  const CollectiveCall& call_;
  const Topology& topology_;
  Library library_;
  LinkLoad load_;
  Load main_, tree_, in_network_, network_;
};

}  // namespace

Seconds automatic_time(const CollectiveCall& call, const Topology& topology, const Calibration& calibration) {
  if (call.groups.front().size() < 2) return Seconds(0.0);
  return AutomaticCollective(call, topology, calibration).time();
}

LoweredCollective lower_automatic(const CollectiveCall& call, const Topology& topology,
                                  const Calibration& calibration) {
  if (call.groups.front().size() < 2) return {.chosen_algorithm = "none", .phases = {}};
  return AutomaticCollective(call, topology, calibration).lower();
}

std::optional<LoweredCollective> lower_in_library(const CollectiveCall& call, const Topology& topology,
                                                  const Calibration& calibration) {
  const bool own_schedule = algorithm_of(call.algorithm).build != nullptr, alone = call.groups.front().size() < 2;
  if (own_schedule && (alone || topology.nccl().none())) return std::nullopt;
  if (alone) return LoweredCollective{std::string(name(call.algorithm)), {}};
  const SyncAlgorithm named = name_in_library(call);
  if (named == SyncAlgorithm::automatic) return std::nullopt;
  std::optional<LoweredCollective> lowered = AutomaticCollective(call, topology, calibration).lower(named);
  if (lowered || own_schedule) return lowered;
  throw ImpossiblePlan(
      "in_network needs switches that add up: NVLink SHARP inside nodes, on NVSwitches of the H100's generation and "
      "later (in_network_reduction: true in a link type), or InfiniBand SHARP between them (network: { "
      "in_network_reduction: true }); use ring or hierarchical here");
}

const Algorithm multi_ring_algorithm = {.operations = {all_reduce, all_gather, reduce_scatter, broadcast, reduce}};
const Algorithm in_network_algorithm = {.operations = {all_reduce, all_gather, reduce_scatter}};

}  // namespace foretrain

// Collectives as NCCL carries them out: the fastest of rings, trees and in-switch reductions under the protocols LL (a
// flag beside every word), LL128 (one per 128 bytes) and Simple (synchronisation once per chunk).
//
//   time = launch + steps · step time(protocol, NVLink | PCIe | network) + bytes / (bandwidth · share(protocol))
//
// The bandwidth is that of the busiest link when NCCL's channels are laid over the topology (traffic.cpp): rings over
// all NVLink lanes or switch ports, every network card used. Step counts are those of NCCL's own model
// (src/graph/tuning.cc); times and shares are calibration constants fitted on published sweeps
// (scenarios/calibrations).
#include "model/collectives/automatic.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "model/collectives/collective.hpp"
#include "model/collectives/exchange.hpp"
#include "model/collectives/link_load.hpp"
#include "model/collectives/network_effects.hpp"
#include "model/collectives/repeated_groups.hpp"
#include "model/collectives/traffic.hpp"

namespace foretrain {

namespace {

// Messages between nodes: slots of 512 KiB (NCCL_BUFFSIZE: 4 MiB in eight), of which a ring sends two at a time
// (ALLREDUCE_SLICESTEPS; src/include/collectives.h).
constexpr Bytes ring_message = 1.0_MiB, tree_message = 0.5_MiB;

Seconds microseconds(double value) { return Seconds(value * 1e-6); }

/// What the protocols of one algorithm cost on given hardware.
struct Protocol {
  std::string name;
  double share = 1.0;  ///< of the bandwidth
  Seconds step;        ///< inside a node
  Seconds ring_step;   ///< between nodes, around a ring
  Seconds tree_step;   ///< between nodes, along a tree
};

/// What one way of carrying the collective out puts on the links.
struct Load {
  Seconds time;  ///< of the busiest link, for one byte
  std::function<std::vector<Flow>()> flows;
};

/// Where all groups pass round the same nodes, and these are alike, three nodes are as busy as all.
std::vector<GroupLayout> on_three_nodes(const std::vector<GroupLayout>& groups, const Topology& topology) {
  constexpr std::size_t enough = 3;
  const std::vector<GroupLayout::NodePart>& nodes = groups.front().nodes;
  if (nodes.size() <= enough || !topology.nodes_are_alike()) return {};
  const auto same_node = [&](const GroupLayout::NodePart& a, const GroupLayout::NodePart& b) {
    return topology.node_of(a.ranks.front()) == topology.node_of(b.ranks.front());
  };
  std::vector<GroupLayout> fewer;
  for (const GroupLayout& group : groups) {
    const auto repeats_first = [&](const GroupLayout::NodePart& part) {
      return node_shift(group.nodes.front().ranks, part.ranks, topology).has_value();
    };
    if (!std::ranges::equal(group.nodes, nodes, same_node) || !std::ranges::all_of(group.nodes, repeats_first))
      return {};
    GroupLayout& three = fewer.emplace_back(group);
    three.nodes.resize(enough);
  }
  return fewer;
}

struct Candidate {
  std::string name;
  Seconds latency;
  const Load* traffic = nullptr;
  double share = 1.0;

  Seconds time(Bytes size) const { return latency + traffic->time * (size / Bytes(1.0)) / share; }
};

class AutomaticCollective {
 public:
  AutomaticCollective(const CollectiveCall& call, const Topology& topology, const CollectiveConstants& constants)
      : call_(call), topology_(topology), constants_(constants), load_(topology) {
    for (const std::vector<int>& group : call.groups) layouts_.push_back(lay_out(group, topology));
    find_slowest_parts();
    slowest_ = &*std::max_element(layouts_.begin(), layouts_.end(), [](const GroupLayout& a, const GroupLayout& b) {
      return a.node_count() < b.node_count();
    });
    few_nodes_ = on_three_nodes(layouts_, topology);
    const std::vector<GroupLayout::NodePart>& nodes = slowest_->nodes;
    for (std::size_t k = 0; nodes.size() > 1 && k < nodes.size(); ++k) {
      hops_.push_back(topology.latency(nodes[k].ranks.front(), nodes[(k + 1) % nodes.size()].ranks.front()));
    }
  }

  LoweredCollective lower() {
    const Candidate best = fastest();
    LoweredCollective::Phase phase{.latency = best.latency, .flows = best.traffic->flows(), .repeat = 1};
    for (Flow& flow : phase.flows) flow.bytes *= (call_.size / Bytes(1.0)) / best.share;
    if (call_.operation == CollectiveOperation::send_receive) add_headers(phase, topology_);
    return {.chosen_algorithm = best.name, .phases = {std::move(phase)}};
  }

  Seconds time() { return fastest().time(call_.size); }

 private:
  Candidate fastest() {
    std::vector<Candidate> candidates;
    if (is_exchange(call_.operation)) {
      main_ = direct_traffic();
      candidates.push_back(direct(main_));
    } else {
      main_ = traffic(ring_message, &TrafficBuilder::add_ring, call_.operation);
      for (const Protocol& protocol : protocols()) candidates.push_back(ring(main_, protocol));
      if (has_parallel_trees()) candidates.push_back(parallel_trees(main_));
    }
    if (call_.operation == CollectiveOperation::all_reduce) {
      if (slowest_->node_count() > 1) {
        tree_ = traffic(tree_message, &TrafficBuilder::add_tree);
        for (const Protocol& protocol : protocols()) candidates.push_back(tree_of(tree_, main_, protocol));
      }
      if (std::all_of(layouts_.begin(), layouts_.end(), [](const GroupLayout& layout) { return layout.in_network; })) {
        in_network_ = traffic(in_switch_message(), &TrafficBuilder::add_in_network);
        candidates.push_back(in_switch(in_network_));
      }
    }
    return *std::min_element(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
      return a.time(call_.size) < b.time(call_.size);
    });
  }

  template <typename... Arguments>
  Load traffic(Bytes message, void (TrafficBuilder::*add)(const GroupLayout&, Arguments...), Arguments... arguments) {
    const auto of = [=, this](const std::vector<GroupLayout>& layouts) {
      TrafficBuilder builder(topology_, constants_, message);
      for (const GroupLayout& layout : layouts) (builder.*add)(layout, arguments...);
      return builder.flows();
    };
    return load(of(few_nodes_.empty() ? layouts_ : few_nodes_), [of, this] { return of(layouts_); });
  }

  Load direct_traffic() {
    TrafficBuilder builder(topology_, constants_, largest_message_), uneven = builder;
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
    return load(flows, [flows] { return flows; });
  }

  Load load(const std::vector<Flow>& busiest, std::function<std::vector<Flow>()> flows) {
    return {load_.busiest(busiest), std::move(flows)};
  }

  /// NCCL halves the chunks of its trees of switches until enough of them are under way, in 16 channels and one lane
  /// for each rank of a node: from 64 KiB on they double with every eightfold size (src/enqueue.cc, thresholds at 1, 4,
  /// 16 and 32 chunks a lane; here without the steps).
  Bytes in_switch_message() const {
    constexpr Bytes least(64 * 1024.0);
    const double chunks = call_.size / (least * (16.0 * slowest_->largest_node));
    return std::min(largest_message_, least * std::cbrt(std::max(chunks, 1e-3)));
  }

  /// Where nodes are of several kinds, all wait for the slowest.
  void find_slowest_parts() {
    int known = -1;
    for (const GroupLayout& layout : layouts_) {
      for (const GroupLayout::NodePart& part : layout.nodes) {
        const int node = topology_.node_of(part.ranks.front());
        const int group = topology_.group_of_node(node);
        if (group == std::exchange(known, group)) continue;
        const Gpu& gpu = topology_.gpu_model(node);
        const CardMessages& messages = topology_.card_messages(node);
        early_ = early_ || gpu.compute_capability < 9.0;
        memory_ = std::min(memory_, gpu.memory_bandwidth);
        card_step_ = std::max(card_step_, messages.step);
        largest_message_ = std::min(largest_message_, messages.largest);
      }
    }
  }

  bool early() const { return early_; }
  Seconds launch() const { return microseconds(early() ? constants_.early_launch_us : constants_.launch_us); }

  /// Between nodes data and the news of its arrival travel the network once per step.
  Seconds network_step(double protocol_us, Seconds inside, Seconds latency) const {
    return std::max({microseconds(protocol_us), latency + inside, card_step_});
  }

  /// Step over the longest hop between neighbouring nodes.
  Seconds longest_step(double protocol_us, Seconds inside) const {
    if (hops_.empty()) return Seconds(0.0);
    return network_step(protocol_us, inside, *std::max_element(hops_.begin(), hops_.end()));
  }

  /// Mean step of a round through a ring of nodes: a chunk crosses every hop but one, at best the shortest.
  Seconds ring_step(double protocol_us, Seconds inside) const {
    if (hops_.empty()) return Seconds(0.0);
    const auto [shortest, longest] = std::minmax_element(hops_.begin(), hops_.end());
    if (*shortest == *longest) return network_step(protocol_us, inside, *longest);
    Seconds round = -network_step(protocol_us, inside, *shortest);
    for (const Seconds hop : hops_) round += network_step(protocol_us, inside, hop);
    return round / static_cast<double>(hops_.size() - 1);
  }

  /// Mean step of a way up a tree: neighbours are close together, so that one level at most spans the longest hop.
  Seconds tree_step(double protocol_us, Seconds inside) const {
    if (hops_.empty()) return Seconds(0.0);
    const auto [shortest, longest] = std::minmax_element(hops_.begin(), hops_.end());
    const Seconds most = network_step(protocol_us, inside, *longest);
    if (*shortest == *longest) return most;
    return (network_step(protocol_us, inside, *shortest) * (levels() - 1.0) + most) / levels();
  }

  double levels() const { return std::ceil(std::log2(static_cast<double>(slowest_->node_count()))); }

  Protocol of_protocol(const char* name, double share, Seconds inside, double network_us) const {
    return {name, share, inside, ring_step(network_us, inside), tree_step(network_us, inside)};
  }

  std::vector<Protocol> protocols() const {
    const bool nvlink = slowest_->nvlink;
    const double factor = nvlink ? 1.0 : constants_.pcie_step_factor;
    const Seconds ll = microseconds(constants_.ll_step_us * factor);
    const Seconds ll128 = microseconds(constants_.ll128_step_us * factor);
    const Seconds simple = microseconds(constants_.simple_step_us * factor);
    // Over NVLink the instructions that check flags are the limit; elsewhere the flags' share of the bytes is.
    const bool inside_nvlink = nvlink && slowest_->node_count() == 1;
    const double ll_share =
        !inside_nvlink ? 8.0 / 16.0 : (early() ? constants_.early_low_latency_share : constants_.low_latency_share);
    const double ll128_share = inside_nvlink ? constants_.ll128_share : 120.0 / 128.0;
    std::vector<Protocol> result = {of_protocol("LL", ll_share, ll, constants_.network_ll_step_us),
                                    of_protocol("Simple", 1.0, simple, constants_.network_simple_step_us)};
    // LL128 relies on NVLink storing 128 bytes at once: NCCL offers it on NVLink only.
    if (nvlink) {
      result.push_back(of_protocol("LL128", ll128_share, ll128, constants_.network_ll128_step_us));
    }
    return result;
  }

  Candidate ring(const Load& traffic, const Protocol& protocol) const {
    const int rounds = call_.operation == CollectiveOperation::all_reduce ? 2 : 1;
    const int steps = rounds * (slowest_->ranks - 1);
    const int network_steps = rounds * (slowest_->node_count() - 1);
    Candidate candidate{"ring/" + protocol.name, launch(), &traffic, protocol.share};
    candidate.latency += protocol.step * static_cast<double>(steps - network_steps) +
                         protocol.ring_step * static_cast<double>(network_steps);
    if (protocol.name == "Simple") candidate.latency += local_copy() * static_cast<double>(rounds);
    return candidate;
  }

  /// A rank's own part passes through its memory once per round without a link to hide behind.
  Seconds local_copy() const {
    using enum CollectiveOperation;
    const bool own_part =
        call_.operation == all_reduce || call_.operation == all_gather || call_.operation == reduce_scatter;
    if (!own_part || memory_.value() <= 0.0 || slowest_->ranks < 2) return Seconds(0.0);
    return call_.size / static_cast<double>(slowest_->ranks) * constants_.local_copy_traffic / memory_;
  }

  /// Two trees that each carry half the message. Over two or three nodes their cards would have less to carry than in a
  /// ring, but NCCL runs them over the ring's channels, at tree_efficiency of its bandwidth and 2 bytes for each byte
  /// (src/graph/tuning.cc): 16 A100 on two nodes stay at the ring's 100 GB/s of bus bandwidth (vTrain, tensor 16).
  Candidate tree_of(const Load& traffic, const Load& ring_traffic, const Protocol& protocol) const {
    const double n = slowest_->ranks;
    const Seconds over_channels = ring_traffic.time * (n / (n - 1.0)) / constants_.tree_efficiency;
    const Seconds up = protocol.step * static_cast<double>(slowest_->largest_node - 1) + protocol.tree_step * levels();
    return {"tree/" + protocol.name, launch() + 2.0 * up, &traffic,
            protocol.share * std::min(1.0, traffic.time / over_channels)};
  }

  /// NCCL 2.23 and later, by default: all-gather and reduce-scatter over nodes of one rank each (ncclPatEnable). The
  /// age of the software is taken from the GPU's.
  bool has_parallel_trees() const {
    const bool suits =
        call_.operation == CollectiveOperation::all_gather || call_.operation == CollectiveOperation::reduce_scatter;
    return suits && !early() && slowest_->largest_node == 1 && slowest_->node_count() > 1;
  }

  /// PAT ("parallel aggregated trees"): a logarithmic number of messages on the way, and a part that still grows with
  /// the ranks; 3/4 of the bus bandwidth, of which half is for the data. Source: NCCL, src/graph/tuning.cc,
  /// NCCL_ALGO_PAT.
  Candidate parallel_trees(const Load& traffic) const {
    const double n = slowest_->ranks;
    const Seconds step = longest_step(constants_.network_simple_step_us, Seconds(0.0));
    return {"pat/Simple", launch() + step / 3.5 * levels() + 2.8_us * n, &traffic, 0.75 * 0.5 * (n - 1.0) / n};
  }

  Candidate in_switch(const Load& traffic) const {
    Candidate candidate{"nvls", launch() + microseconds(constants_.nvls_us), &traffic, 1.0};
    if (slowest_->node_count() > 1) {
      candidate.name = "nvls_tree";
      candidate.latency +=
          2.0 * levels() * tree_step(constants_.network_simple_step_us, microseconds(constants_.simple_step_us));
    }
    return candidate;
  }

  /// The first seven peers cost a set-up each; further ones are served in batches of eight.
  Candidate direct(const Load& traffic) const {
    constexpr int batch = 8;
    const int peers = call_.operation == CollectiveOperation::all_to_all ? slowest_->ranks - 1 : 1;
    Candidate candidate{"direct", launch(), &traffic, 1.0};
    const int set_ups = std::min(peers, batch - 1) + peers / batch;
    candidate.latency += microseconds(constants_.peer_us) * static_cast<double>(set_ups);
    if (slowest_->node_count() > 1) {
      candidate.latency += longest_step(constants_.network_simple_step_us, Seconds(0.0));
    } else if (call_.operation == CollectiveOperation::send_receive && slowest_->nvlink) {
      candidate.share = std::min(1.0, traffic.time / (Bytes(1.0) / peer_bandwidth()));
    }
    return candidate;
  }

  /// Point-to-point messages get the channels of one peer: 32 over the ranks of the communicator, more when each then
  /// still has 16 MiB to move (H100 send-receive sweeps with 4 and 8 ranks: 158, 80 GB/s up to 64 MiB, doubling with
  /// the size from there on).
  BytesPerSecond peer_bandwidth() const {
    const double channels = std::max(32.0 / slowest_->ranks, call_.size / 16.0_MiB);
    return BytesPerSecond(constants_.peer_channel_gbps * 1e9) * channels;
  }

  const CollectiveCall& call_;
  const Topology& topology_;
  const CollectiveConstants& constants_;
  LinkLoad load_;
  std::vector<GroupLayout> layouts_;
  Load main_, tree_, in_network_;
  std::vector<GroupLayout> few_nodes_;  ///< whose busiest link is that of layouts_; empty: all count
  const GroupLayout* slowest_ = nullptr;
  bool early_ = false;  ///< GPUs before Hopper, and the software of their time
  BytesPerSecond memory_ = BytesPerSecond::infinity();
  Seconds card_step_;
  Bytes largest_message_ = Bytes::infinity();
  std::vector<Seconds> hops_;  ///< latency from each of its nodes to the next, round the ring; empty for one node
};

}  // namespace

Seconds automatic_time(const CollectiveCall& call, const Topology& topology, const Calibration& calibration) {
  if (call.groups.front().size() < 2) return Seconds(0.0);
  return AutomaticCollective(call, topology, calibration.collective).time();
}

LoweredCollective lower_automatic(const CollectiveCall& call, const Topology& topology,
                                  const Calibration& calibration) {
  if (call.groups.front().size() < 2) return {.chosen_algorithm = "none", .phases = {}};
  return AutomaticCollective(call, topology, calibration.collective).lower();
}

}  // namespace foretrain

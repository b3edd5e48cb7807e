// Collectives on concrete hardware: a call is lowered to phases of flows over a topology, which the estimate adds up
// and the simulator runs. `auto` picks algorithm and protocol as NCCL does.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/base/shared_vector.hpp"
#include "model/collectives/operation.hpp"
#include "model/collectives/rank_groups.hpp"
#include "model/cost/calibration.hpp"
#include "model/hardware/topology.hpp"

namespace foretrain {

/// Routing of an expert all-to-all, besides its size.
struct TokenRouting {
  ExpertDispatch dispatch = ExpertDispatch::all_to_all;
  int copies = 1;          ///< of each token, for as many experts
  double imbalance = 1.0;  ///< bytes of the hottest rank over the mean
  auto operator<=>(const TokenRouting&) const = default;
};

/// The same collective carried out at the same time by several disjoint groups of GPU ranks (e.g. one data-parallel
/// group per tensor-parallel index).
struct CollectiveCall {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  SyncAlgorithm algorithm = SyncAlgorithm::automatic;
  Bytes size;  ///< as nccl-tests counts it: the whole buffer of one rank (gathered size for all-gather, reduce-scatter)
  RankGroups groups;  ///< GPU ranks, in ring order of the caller's choice
  int servers = 1;    ///< parameter servers
  ServerPlacement placement = ServerPlacement::cpu;
  std::vector<int> levels = {};  ///< hierarchical: as in Sync
  TokenRouting tokens = {};      ///< all_to_all by `automatic`
  bool by_messages = false;      ///< passed on round a ring by the trainer itself (ring attention)
  bool rotating_root = false;    ///< broadcast: one of many, whose roots are the ranks in turn; as the mean of these
  int ranks = 0;  ///< of each group, where those listed stand for more: on further nodes all goes on as on these

  [[nodiscard]] int group_size() const { return ranks > 0 ? ranks : static_cast<int>(groups.front().size()); }
};

/// Bytes that move between two ends at the same time. On a link that is full, flows get rates in proportion to their
/// weights: a weight is the number of connections that the flow stands for. Connections between different ends add up
/// (a flow that stands for messages to many ranks has the weight of all); messages of a collective between the same two
/// ends use one connection, one after the other (joined).
struct Flow {
  EndpointId source = 0;
  EndpointId destination = 0;
  Bytes bytes;  ///< as links count them: payload with what the library's protocol and small messages' headers add
  double weight = 1.0;
  Bytes message = Bytes::infinity();  ///< into which the library cuts them; each holds up its cards (link_load.hpp)
  BytesPerSecond most_rate = BytesPerSecond::infinity();  ///< of the library's connections between these ends

  /// The same between GPUs so many ranks further on.
  [[nodiscard]] Flow shifted(int ranks) const {
    Flow other = *this;
    other.source += ranks, other.destination += ranks;
    return other;
  }
  /// Both over the connections of the one that has more.
  [[nodiscard]] Flow joined(const Flow& other) const {
    return {source,
            destination,
            bytes + other.bytes,
            std::max(weight, other.weight),
            std::min(message, other.message),
            std::min(most_rate, other.most_rate)};
  }
  /// Each over its own connections.
  [[nodiscard]] Flow beside(const Flow& other) const {
    Flow both = joined(other);
    both.weight = weight + other.weight;
    return both;
  }
};

/// Calls visit(flow, link) for each link that each of the flows crosses.
template <typename Visit>
void visit_links(const std::vector<Flow>& flows, const Topology& topology, const Visit& visit) {
  std::vector<LinkId> route;
  for (const Flow& flow : flows) {
    route.clear();
    topology.append_route(flow.source, flow.destination, route);
    for (const LinkId link : route) visit(flow, link);
  }
}

struct LoweredCollective {
  /// Flows that start together `latency` after the previous phase has finished; the whole is repeated `repeat` times.
  struct Phase {
    Seconds latency;
    std::vector<Flow> flows;
    int repeat = 1;
  };

  std::string chosen_algorithm;  ///< "ring/Simple" when automatic, else the algorithm's name
  SharedVector<Phase> phases;
  double times = 1.0;  ///< as many flows are in all as are listed, where these stand for others

  /// Whether no flow crosses host memory, whose cards depend on the node.
  [[nodiscard]] bool is_between_gpus(const Topology& topology) const;
  /// This for GPUs so many ranks further on, where the topology repeats after these. Flows are made once they are read.
  [[nodiscard]] LoweredCollective shifted(int ranks) const;
};

/// The same in all its phases.
template <typename Visit>
void visit_links(const LoweredCollective& lowered, const Topology& topology, const Visit& visit) {
  for (const LoweredCollective::Phase& phase : lowered.phases) visit_links(phase.flows, topology, visit);
}

/// Groups have equally many ranks each, no rank stands twice. Throws ImpossiblePlan for a call that the algorithm has
/// no schedule for, and where the hardware cannot carry the algorithm out.
LoweredCollective lower(const CollectiveCall& call, const Topology& topology, const Calibration& calibration);

/// Weights as the network shares its links (Sharing): messages between two ranks have queue_pairs connections each; as
/// traffic classes, a phase's flows divide among them the lane that they have on every link. lower() does so.
void share_links(LoweredCollective& lowered, CollectiveOperation operation, const Topology& topology);

/// One flow for each pair of ends, all joined, ordered by source and destination. Bytes are added in the
/// flows' own order.
std::vector<Flow> merge_by_ends(std::vector<Flow> flows, Flow (Flow::*join)(const Flow&) const = &Flow::joined);

/// nccl-tests' factor from algorithm bandwidth (size/time) to bus bandwidth: 2(n-1)/n for all-reduce, (n-1)/n for
/// all-gather, reduce-scatter and all-to-all, 1 else. Source: nccl-tests doc/PERFORMANCE.md.
double bus_bandwidth_factor(CollectiveOperation operation, int ranks);

}  // namespace foretrain

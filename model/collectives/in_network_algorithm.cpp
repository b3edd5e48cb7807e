// The switches do the work: one that gets the same chunk from all its ports adds it up, and sends one chunk to all of
// them. Inside a node of l ranks (NVLink SHARP) every rank puts its message into the switch (S up its port) and takes
// out the sum of its own share (S/l down); back, it puts the share in and the switch multicasts it. Between m nodes
// (SHARP in InfiniBand switches) each of l network trees, one for every place in a node, adds up one share, which
// passes every card once each way. Where the nodes have no such switch, rings do the part inside them. The message
// passes through these stages in pieces. Sources: Klenk et al., "An in-network architecture for accelerating
// shared-memory multiprocessor collectives", ISCA 2020; Graham et al., "Scalable hierarchical aggregation and reduction
// protocol (SHARP)", COMHPC 2016; NCCL's NVLS and CollNet.
#include <fmt/format.h>

#include <memory>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

/// Ranks are numbered node by node; participants beyond them are the nodes' switches, then the network's trees.
struct Fabric {
  Fabric(int all_ranks, const ScheduleShape& shape)
      : ranks(all_ranks),
        locals(shape.parts),
        nodes(locals > 0 ? ranks / locals : 0),
        pieces(shape.pieces),
        switched(shape.switches_inside && locals > 1) {
    if (locals < 1 || ranks % locals != 0) {
      throw ImpossiblePlan(
          fmt::format("in_network: {} ranks on nodes of {}; every node must have the same number", ranks, locals));
    }
  }

  int ranks, locals, nodes, pieces;
  bool switched;  ///< inside the nodes

  [[nodiscard]] int node_switch(int node) const { return ranks + node; }
  [[nodiscard]] int network_tree(int place) const { return ranks + (switched ? nodes : 0) + place; }
  /// The ranks at the ports of every switch and tree, in the order of their participants.
  [[nodiscard]] std::vector<std::vector<int>> ports() const {
    std::vector<std::vector<int>> result;
    for (int node = 0; switched && node < nodes; ++node) {
      result.emplace_back();
      for (int place = 0; place < locals; ++place) result.back().push_back(rank(node, place));
    }
    for (int place = 0; nodes > 1 && place < locals; ++place) {
      result.emplace_back();
      for (int node = 0; node < nodes; ++node) result.back().push_back(rank(node, place));
    }
    return result;
  }
  [[nodiscard]] int rank(int node, int place) const { return node * locals + place; }

  // The part of rank r is the chunks [r·pieces, (r+1)·pieces), a piece of it one chunk.
  [[nodiscard]] Transfer all(int piece) const { return {0, 0, piece, ranks, Transfer::Kind::copy, pieces}; }
  [[nodiscard]] Transfer share(int place, int piece) const {
    return {0, 0, place * pieces + piece, nodes, Transfer::Kind::copy, locals * pieces};
  }
  [[nodiscard]] Transfer own(int rank, int piece) const { return {0, 0, rank * pieces + piece, 1}; }
};
using SharedFabric = std::shared_ptr<const Fabric>;

/// What all ranks do with one piece at the same time.
using Stage = std::function<void(int piece, Phase& transfers)>;

template <typename Do>
void for_each_rank(const Fabric& fabric, const Do& do_it) {
  for (int node = 0; node < fabric.nodes; ++node) {
    for (int place = 0; place < fabric.locals; ++place) do_it(node, place, fabric.rank(node, place));
  }
}

using Stages = std::vector<Stage>;

/// Where the switches inside do not add up: shares pass round a ring of the node's ranks, and are summed on their way
/// (reduce) or handed to everybody (copy).
void ring_inside(const SharedFabric& f, Transfer::Kind kind, Stages& stages) {
  const int first_lag = kind == Transfer::Kind::reduce ? 1 : 0;
  for (int hop = 0; hop + 1 < f->locals; ++hop) {
    stages.emplace_back([=](int piece, Phase& transfers) {
      for (int node = 0; node < f->nodes; ++node) {
        append_ring_hop(
            f->locals, hop + first_lag, kind, [&](int place) { return f->rank(node, place); },
            [&](int place) { return f->share(place, piece); }, transfers);
      }
    });
  }
}

/// Every rank's share, or its whole message, into its node's switch or out of it.
Stage through_switch(const SharedFabric& f, bool share, bool into, Transfer::Kind kind) {
  return [=](int piece, Phase& transfers) {
    for_each_rank(*f, [&](int node, int place, int rank) {
      const int hub = f->node_switch(node);
      const Transfer range = share ? f->share(place, piece) : f->all(piece);
      transfers.push_back(into ? sent(range, rank, hub, kind) : sent(range, hub, rank, kind));
    });
  };
}

/// Afterwards every rank has the sum over its node of the share of its place.
void add_up_inside(const SharedFabric& f, Stages& stages) {
  if (f->locals == 1) return;
  if (!f->switched) return ring_inside(f, Transfer::Kind::reduce, stages);
  stages.push_back(through_switch(f, false, true, Transfer::Kind::reduce));
  stages.push_back(through_switch(f, true, false, Transfer::Kind::copy));
}

/// From the shares of the places to whole messages.
void gather_inside(const SharedFabric& f, Stages& stages) {
  if (f->locals == 1) return;
  if (!f->switched) return ring_inside(f, Transfer::Kind::copy, stages);
  stages.push_back(through_switch(f, true, true, Transfer::Kind::copy));
  stages.push_back(through_switch(f, false, false, Transfer::Kind::copy));
}

/// Rank 0's node hands shares from or to rank 0.
void share_at_root(const SharedFabric& f, bool scatter, Stages& stages) {
  if (f->locals == 1) return;
  const auto deal = [=](int piece, Phase& transfers) {
    for (int place = 1; place < f->locals; ++place) {
      transfers.push_back(sent(f->share(place, piece), scatter ? 0 : place, scatter ? place : 0, Transfer::Kind::copy));
    }
  };
  stages.emplace_back(deal);
}

/// Through the network's trees and back: shares, or what each rank owns; of a broadcast or reduce, those of the root's
/// node in one direction.
void cross_network(const SharedFabric& f, CollectiveOperation operation, Stages& stages) {
  if (f->nodes == 1) return;
  const auto kind = reduces(operation) ? Transfer::Kind::reduce : Transfer::Kind::copy;
  stages.emplace_back([=](int piece, Phase& transfers) {
    for_each_rank(*f, [&](int node, int place, int rank) {
      if (operation == broadcast && node != 0) return;
      const Transfer range = operation == all_gather ? f->own(rank, piece) : f->share(place, piece);
      transfers.push_back(sent(range, rank, f->network_tree(place), kind));
    });
  });
  stages.emplace_back([=](int piece, Phase& transfers) {
    for_each_rank(*f, [&](int node, int place, int rank) {
      if (operation == reduce && node != 0) return;
      const Transfer range = operation == reduce_scatter ? f->own(rank, piece) : f->share(place, piece);
      transfers.push_back(sent(range, f->network_tree(place), rank, Transfer::Kind::copy));
    });
  });
}

/// All stages, each piece one behind the other.
Schedule through_switches(CollectiveOperation operation, int ranks, const ScheduleShape& shape) {
  const SharedFabric f = std::make_shared<const Fabric>(ranks, shape);
  Stages stages;
  if (operation == broadcast) share_at_root(f, true, stages);
  if (reduces(operation)) add_up_inside(f, stages);
  cross_network(f, operation, stages);
  if (copies(operation)) gather_inside(f, stages);
  if (operation == reduce) share_at_root(f, false, stages);
  const int count = static_cast<int>(stages.size());
  const auto phase = [=, pieces = f->pieces](int index) {
    Phase transfers;
    visit_hops(count, pieces, index, [&](int stage, int piece) { stages[at_index(stage)](piece, transfers); });
    return transfers;
  };
  Schedule schedule = joined(ranks, ranks * f->pieces, {pipeline(count, f->pieces, phase)});
  schedule.switch_ports = f->ports();
  schedule.servers = static_cast<int>(schedule.switch_ports.size());
  return schedule;
}

bool all_reduce_in_switch(EndpointId source, EndpointId destination, const Topology& topology, bool network) {
  const Route route = topology.route(source, destination);
  const auto reduces = [&](LinkId link) {
    const bool counts = !network || topology.link_kind(link) == LinkKind::network;
    return !counts || topology.in_network_reduction(link);
  };
  return route.links.size() > 1 && std::all_of(route.links.begin(), route.links.end(), reduces);
}

ScheduleShape in_network_shape(const CollectiveCall& call, const std::vector<int>& group, const Topology& topology) {
  ScheduleShape shape(equal_ranks_per_node(call, group, topology));
  const std::vector<std::vector<int>> nodes = split_by_node(group, topology);
  const std::vector<int>& first = nodes.front();
  shape.switches_inside = first.size() > 1 && all_reduce_in_switch(first[0], first[1], topology, false);
  if (nodes.size() == 1 && first.size() > 1 && !shape.switches_inside) {
    throw ImpossiblePlan(
        "in_network needs switches that add up: NVLink SHARP, on NVSwitches of the H100's generation and later "
        "(in_network_reduction: true in a link type); use ring or multi_ring here");
  }
  if (nodes.size() > 1 && !all_reduce_in_switch(first[0], nodes[1][0], topology, true)) {
    throw ImpossiblePlan(
        "in_network between nodes needs switches that add up (InfiniBand SHARP); network: { in_network_reduction: true "
        "} "
        "if the fabric has them, or use hierarchical");
  }
  return shape;
}

}  // namespace

const Algorithm in_network_algorithm = {
    .operations = {all_reduce, all_gather, reduce_scatter, broadcast, reduce},
    .build = through_switches,
    .shape = in_network_shape,
    .order = ring_order,
    .runs = Algorithm::Runs::switches,
    .pieces = {1, 4, 16, 64},
};

}  // namespace foretrain

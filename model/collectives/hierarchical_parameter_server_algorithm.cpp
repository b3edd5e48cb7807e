// The machine first: a ring inside it adds up (reduce-scatter), so that the servers see one push and one pull per
// machine instead of one per GPU. Then a ring hands the result round (all-gather). The push is shared among the
// machine's GPUs, each for its part of the message, so that all of its NICs take part. Servers' links carry
// m·S/servers each way for m machines. Source: Zhang et al., "Dive into Deep Learning", section 13.7; Jiang et al.,
// "A unified architecture for accelerating distributed DNN training in heterogeneous GPU/CPU clusters" (BytePS),
// OSDI 2020.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/base/error.hpp"
#include "model/collectives/algorithm.hpp"

namespace foretrain {

namespace {

using enum CollectiveOperation;

struct Machines {
  int ranks, locals, servers;
  int chunks = std::lcm(locals, servers);  ///< of the message: a whole number per GPU of a machine, and per server

  /// One hop of the rings inside the machines.
  [[nodiscard]] Phase hop(int lag, Transfer::Kind kind) const {
    Phase transfers;
    const int part = chunks / locals;
    for (int first = 0; first < ranks; first += locals) {
      append_ring_hop(
          locals, lag, kind, [&](int place) { return first + place; },
          [&](int block) { return Transfer{.first_chunk = block * part, .chunks = part}; }, transfers);
    }
    return transfers;
  }

  /// Every GPU's part, cut at the servers' bounds.
  [[nodiscard]] Phase exchange(bool push) const {
    Phase transfers;
    const int part = chunks / locals, per_server = chunks / servers;
    for (int rank = 0; rank < ranks; ++rank) {
      const int begin = rank % locals * part;
      for (int first = begin; first < begin + part;) {
        const int server = first / per_server;
        const int last = std::min(begin + part, (server + 1) * per_server);
        transfers.push_back(push ? Transfer{rank, ranks + server, first, last - first, Transfer::Kind::reduce}
                                 : Transfer{ranks + server, rank, first, last - first, Transfer::Kind::copy});
        first = last;
      }
    }
    return transfers;
  }
};

ScheduleShape machine_shape(const CollectiveCall& call, const std::vector<int>& group, const Topology& topology) {
  ScheduleShape shape(call.servers);
  shape.ranks_per_node = equal_ranks_per_node(call, group, topology);
  return shape;
}

/// Inside every machine, then with the servers, then inside again.
Schedule machines_first(CollectiveOperation /*all_reduce*/, int ranks, const ScheduleShape& shape) {
  if (shape.parts < 1) throw ImpossiblePlan("a parameter server needs at least one server");
  if (shape.ranks_per_node < 1 || ranks % shape.ranks_per_node != 0) {
    throw ImpossiblePlan(fmt::format(
        "hierarchical_parameter_server: {} ranks on machines of {}; every machine must have the same number", ranks,
        shape.ranks_per_node));
  }
  const Machines machines{ranks, shape.ranks_per_node, shape.parts};
  const int inner = machines.locals - 1;
  Schedule schedule = joined(ranks, machines.chunks,
                             {{inner, [=](int index) { return machines.hop(index + 1, Transfer::Kind::reduce); }, 0},
                              {2, [=](int index) { return machines.exchange(index == 0); }},
                              {inner, [=](int index) { return machines.hop(index, Transfer::Kind::copy); }, 1}});
  schedule.servers = machines.servers;
  return schedule;
}

}  // namespace

const Algorithm hierarchical_parameter_server_algorithm = {
    .operations = {all_reduce},
    .build = machines_first,
    .shape = machine_shape,
    .order = ring_order,
    .has_servers = true,
};

}  // namespace foretrain

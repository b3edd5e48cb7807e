// What collectives do, and how: operations, algorithms, and where servers stand.
#pragma once

#include "model/base/words.hpp"

namespace foretrain {

enum class SyncAlgorithm {
  automatic,
  naive,
  tree,
  double_tree,
  ring,
  bidirectional_ring,
  halving_doubling,
  hierarchical,
  parameter_server,
  multi_ring,                    ///< one ring per network card, or per set of NVLink lanes
  hierarchical_leader,           ///< reduce to one rank per node, exchange between those, broadcast
  pairwise,                      ///< every two ranks exchange what they owe each other, one partner per phase
  in_network,                    ///< the switches add up and multicast
  hierarchical_parameter_server  ///< one push and one pull per machine
};
/// Whether an algorithm has servers: Sync::servers, placement and consistency mean something.
constexpr bool has_servers(SyncAlgorithm algorithm) {
  return algorithm == SyncAlgorithm::parameter_server || algorithm == SyncAlgorithm::hierarchical_parameter_server;
}

template <>
constexpr std::string_view enumerator_word<SyncAlgorithm::automatic>() {
  return "auto";
}

enum class ServerPlacement { cpu, gpu, dedicated, colocated };
enum class CollectiveOperation { all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_receive };

}  // namespace foretrain

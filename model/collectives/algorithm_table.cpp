#include <algorithm>

#include "model/collectives/algorithms.hpp"

namespace foretrain {

const std::vector<AlgorithmRow>& algorithm_table() {
  using enum CollectiveOperation;
  using enum SyncAlgorithm;
  static const std::vector<AlgorithmRow> table = {
      {naive, "naive", all_reduce, naive_all_reduce},
      {naive, "naive", reduce_scatter, naive_reduce_scatter},
      {naive, "naive", all_gather, naive_all_gather},
      {naive, "naive", broadcast, naive_broadcast},
      {naive, "naive", reduce, naive_reduce},
      {naive, "naive", all_to_all, direct_all_to_all},
      {naive, "naive", send_receive, direct_send_receive},
      {tree, "tree", all_reduce, tree_all_reduce},
      {tree, "tree", broadcast, tree_broadcast},
      {tree, "tree", reduce, tree_reduce},
      {double_tree, "double_tree", all_reduce, double_tree_all_reduce},
      {double_tree, "double_tree", broadcast, double_tree_broadcast},
      {double_tree, "double_tree", reduce, double_tree_reduce},
      {ring, "ring", all_reduce, ring_all_reduce},
      {ring, "ring", all_gather, ring_all_gather},
      {ring, "ring", reduce_scatter, ring_reduce_scatter},
      {ring, "ring", broadcast, ring_broadcast},
      {ring, "ring", reduce, ring_reduce},
      {ring, "ring", all_to_all, direct_all_to_all},
      {ring, "ring", send_receive, direct_send_receive},
      {bidirectional_ring, "bidirectional_ring", all_reduce, bidirectional_ring_all_reduce},
      {bidirectional_ring, "bidirectional_ring", reduce_scatter, bidirectional_ring_reduce_scatter},
      {bidirectional_ring, "bidirectional_ring", all_gather, bidirectional_ring_all_gather},
      {bidirectional_ring, "bidirectional_ring", broadcast, bidirectional_ring_broadcast},
      {bidirectional_ring, "bidirectional_ring", reduce, bidirectional_ring_reduce},
      {multi_ring, "multi_ring", all_reduce, multi_ring_all_reduce},
      {multi_ring, "multi_ring", reduce_scatter, multi_ring_reduce_scatter},
      {multi_ring, "multi_ring", all_gather, multi_ring_all_gather},
      {multi_ring, "multi_ring", broadcast, multi_ring_broadcast},
      {multi_ring, "multi_ring", reduce, multi_ring_reduce},
      {halving_doubling, "halving_doubling", all_reduce, halving_doubling_all_reduce},
      {halving_doubling, "halving_doubling", reduce_scatter, halving_doubling_reduce_scatter},
      {halving_doubling, "halving_doubling", all_gather, halving_doubling_all_gather},
      {halving_doubling, "halving_doubling", broadcast, halving_doubling_broadcast},
      {halving_doubling, "halving_doubling", reduce, halving_doubling_reduce},
      {hierarchical, "hierarchical", all_reduce, hierarchical_all_reduce},
      {hierarchical, "hierarchical", reduce_scatter, hierarchical_reduce_scatter},
      {hierarchical, "hierarchical", all_gather, hierarchical_all_gather},
      {hierarchical, "hierarchical", broadcast, hierarchical_broadcast},
      {hierarchical, "hierarchical", reduce, hierarchical_reduce},
      {hierarchical, "hierarchical", all_to_all, hierarchical_all_to_all},
      {hierarchical_leader, "hierarchical_leader", all_reduce, hierarchical_leader_all_reduce},
      {hierarchical_leader, "hierarchical_leader", broadcast, hierarchical_leader_broadcast},
      {hierarchical_leader, "hierarchical_leader", reduce, hierarchical_leader_reduce},
      {pairwise, "pairwise", all_reduce, pairwise_all_reduce},
      {pairwise, "pairwise", reduce_scatter, pairwise_reduce_scatter},
      {pairwise, "pairwise", all_gather, pairwise_all_gather},
      {pairwise, "pairwise", all_to_all, pairwise_all_to_all},
      {in_network, "in_network", all_reduce, in_network_all_reduce},
      {in_network, "in_network", reduce_scatter, in_network_reduce_scatter},
      {in_network, "in_network", all_gather, in_network_all_gather},
      {in_network, "in_network", broadcast, in_network_broadcast},
      {in_network, "in_network", reduce, in_network_reduce},
      {parameter_server, "parameter_server", all_reduce, parameter_server_all_reduce},
      {hierarchical_parameter_server, "hierarchical_parameter_server", all_reduce,
       hierarchical_parameter_server_all_reduce},
  };
  return table;
}

const AlgorithmRow* find_algorithm(SyncAlgorithm algorithm, CollectiveOperation operation) {
  const std::vector<AlgorithmRow>& table = algorithm_table();
  const auto row = std::find_if(table.begin(), table.end(), [&](const AlgorithmRow& candidate) {
    return candidate.algorithm == algorithm && candidate.operation == operation;
  });
  return row == table.end() ? nullptr : &*row;
}

std::vector<std::string> algorithms_for(CollectiveOperation operation) {
  std::vector<std::string> names;
  for (const AlgorithmRow& row : algorithm_table()) {
    if (row.operation == operation) names.push_back(row.name);
  }
  return names;
}

}  // namespace foretrain

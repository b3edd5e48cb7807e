#include <algorithm>

#include "model/collectives/algorithms.hpp"

namespace foretrain {

const std::vector<AlgorithmRow>& algorithm_table() {
  using enum CollectiveOperation;
  static const std::vector<AlgorithmRow> table = {
      {SyncAlgorithm::naive, "naive", all_reduce, naive_all_reduce},
      {SyncAlgorithm::tree, "tree", all_reduce, tree_all_reduce},
      {SyncAlgorithm::double_tree, "double_tree", all_reduce, double_tree_all_reduce},
      {SyncAlgorithm::ring, "ring", all_reduce, ring_all_reduce},
      {SyncAlgorithm::ring, "ring", all_gather, ring_all_gather},
      {SyncAlgorithm::ring, "ring", reduce_scatter, ring_reduce_scatter},
      {SyncAlgorithm::ring, "ring", broadcast, ring_broadcast},
      {SyncAlgorithm::ring, "ring", reduce, ring_reduce},
      {SyncAlgorithm::ring, "ring", all_to_all, direct_all_to_all},
      {SyncAlgorithm::ring, "ring", send_receive, direct_send_receive},
      {SyncAlgorithm::bidirectional_ring, "bidirectional_ring", all_reduce, bidirectional_ring_all_reduce},
      {SyncAlgorithm::halving_doubling, "halving_doubling", all_reduce, halving_doubling_all_reduce},
      {SyncAlgorithm::hierarchical, "hierarchical", all_reduce, hierarchical_all_reduce},
      {SyncAlgorithm::parameter_server, "parameter_server", all_reduce, parameter_server_all_reduce},
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

}  // namespace foretrain

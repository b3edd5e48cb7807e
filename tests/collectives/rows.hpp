// Every schedule of every algorithm, for tests that try them all.
#pragma once

#include <vector>

#include "model/collectives/algorithm.hpp"

namespace foretrain {

struct AlgorithmRow {
  SyncAlgorithm algorithm;
  CollectiveOperation operation;

  [[nodiscard]] Schedule build(int ranks, const ScheduleShape& shape) const {
    return algorithm_of(algorithm).schedule(operation, ranks, shape);
  }
};

inline std::vector<AlgorithmRow> algorithm_table() {
  std::vector<AlgorithmRow> rows;
  for (std::size_t a = 0; a < names_of<SyncAlgorithm>.size(); ++a) {
    const auto algorithm = static_cast<SyncAlgorithm>(a);
    if (algorithm_of(algorithm).build == nullptr) continue;
    for (const CollectiveOperation operation : algorithm_of(algorithm).operations)
      rows.push_back({algorithm, operation});
  }
  return rows;
}

}  // namespace foretrain

// Every operation of every algorithm, for tests that try them all.
#pragma once

#include <string>
#include <vector>

#include "model/collectives/algorithm.hpp"

namespace foretrain {

struct AlgorithmRow {
  SyncAlgorithm algorithm;
  std::string name;
  CollectiveOperation operation;
  Algorithm::Build build;
};

inline std::vector<AlgorithmRow> algorithm_table() {
  std::vector<AlgorithmRow> rows;
  for (std::size_t a = 0; a < names_of<SyncAlgorithm>.size(); ++a) {
    for (std::size_t o = 0; o < names_of<CollectiveOperation>.size(); ++o) {
      const auto algorithm = static_cast<SyncAlgorithm>(a);
      const auto operation = static_cast<CollectiveOperation>(o);
      const Algorithm::Build build = algorithm_of(algorithm).build(operation);
      if (build != nullptr) rows.push_back({algorithm, std::string(name(algorithm)), operation, build});
    }
  }
  return rows;
}

}  // namespace foretrain

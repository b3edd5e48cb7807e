// A training step as execution traces of MLCommons Chakra (schema/protobuf/et_def.proto): one for each class of ranks
// that behave alike, made of the task graph that predictions run, with all collectives inside layers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace foretrain {

struct ChakraTrace {
  int rank = 0;            ///< the first of those that it stands for
  std::vector<int> ranks;  ///< all of them
  std::string bytes;       ///< metadata, then nodes, each behind its length
};

/// Ranks that have a trace: the first of each class, with its own groups and neighbours, or all.
enum class ChakraRanks { of_classes, all };

/// Returns the ranks of each process group by its number, as JSON: ASTRA-sim's communicator groups. Computation is
/// reported by its duration, what moves by its bytes: those of one rank's whole buffer, as nccl-tests counts. Throws
/// ScenarioError for what does not train, and for parameter servers.
std::string write_chakra_traces(const Scenario& scenario, ChakraRanks which,
                                const std::function<void(const ChakraTrace&)>& write);

}  // namespace foretrain

// A training step as execution traces of MLCommons Chakra (schema/protobuf/et_def.proto): one for each class of ranks
// that behave alike, made of the task graph that predictions run, with all collectives inside layers.
#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace foretrain {

struct ChakraTrace {
  int rank = 0;            ///< the first of those that it stands for
  std::vector<int> ranks;  ///< all of them
  std::string bytes;       ///< metadata, then nodes, each behind its length
};

struct ChakraExport {
  std::vector<ChakraTrace> traces;
  /// By the name of a process group in the traces: the ranks of each group that has it, as JSON.
  std::string groups;
};

/// Computation is told by its duration, what moves by its bytes: those of one rank's whole buffer, as nccl-tests
/// counts. Throws ScenarioError for what does not train, and for parameter servers.
ChakraExport chakra_traces(const Scenario& scenario);

}  // namespace foretrain

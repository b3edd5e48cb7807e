// What a multiprocessor does per clock, by compute capability (scenarios/hardware/architectures.yaml).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/quantity.hpp"

namespace foretrain {

/// Operations per clock of one multiprocessor, by the word of the precision.
using OperationsPerClock = std::map<std::string, double>;

struct Architecture {
  double compute_capability = 0.0;
  std::string name;  ///< "ampere"
  OperationsPerClock vector, tensor;
  OperationsPerClock geforce;  ///< tensor cores of boards sold as GeForce; empty: as `tensor`
  Seconds memory_latency;
  double l2_bytes = 0.0;  ///< per clock
  std::string source;
};

/// Read once. Throws ScenarioError.
const std::vector<Architecture>& architectures();

/// The last one that is not newer than the capability; the oldest for what is older than all.
const Architecture& architecture_of(double compute_capability);

}  // namespace foretrain

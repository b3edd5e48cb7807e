// An operator that runs by itself, over and over, as benchmarks measure it.
#pragma once

#include <vector>

#include "model/workload/operator.hpp"

namespace foretrain {

/// Time that it has run: until the board's power has settled, as in a training; or for a burst of milliseconds, before.
enum class Clock { sustained, boost };

/// Launcher of the operator: a recorded graph, so that its time is the device's alone; or the host, each kernel by a
/// launch of its own behind the one before.
enum class Launched { graph, stream };

struct OperatorConditions {
  Clock clock = Clock::sustained;
  Launched launch = Launched::graph;
  /// Operand A of a product in a format that operands are cast to comes in bf16; else both lie ready.
  bool cast = true;
  bool operator==(const OperatorConditions&) const = default;
};

/// `repeat` times the same.
struct OperatorWorkload {
  Operator op;
  int repeat = 1;
  OperatorConditions conditions;

  /// Kernels of the operator, in order: the kernels that cast operand A, where they do, and the operator.
  [[nodiscard]] std::vector<Operator> operators() const;
};

}  // namespace foretrain

// Runs suites one after the other, each in a process of its own. Never touches CUDA itself: whatever a GPU does, this
// process lives on and says what happened.
#pragma once

#include <string>
#include <vector>

#include "validate/cuda/core/suite.hpp"

namespace foretrain::gpu {

struct MeasureTask {
  SuiteTask common;  ///< of all suites
  std::vector<const Suite*> suites;
  int processes = 1;           ///< that measure together, one GPU each
  double point_limit_s = 0.0;  ///< a child that says nothing for longer hangs
};

/// Measures what the folder does not hold yet; progress and a summary go to standard error. Returns an exit_status.
/// Throws GpuError (no usable GPU), UsageError (the folder is in use, or holds another machine), std::system_error.
int measure(const MeasureTask& task);

}  // namespace foretrain::gpu

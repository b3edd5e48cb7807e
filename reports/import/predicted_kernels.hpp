// A step as predicted, in the kinds of a profiler's trace.
#pragma once

#include <map>
#include <string>

#include "model/result.hpp"
#include "model/scenario/scenario.hpp"
#include "reports/import/kineto_trace.hpp"

namespace foretrain {

struct PredictedStep {
  std::string scenario;
  std::map<KernelKind, TracedKernels> kernels;  ///< of the first pipeline stage's ranks
  Result result;                                ///< of the training
};

/// Throws ScenarioError where nothing is trained, and as predict().
PredictedStep predicted_kernels(const Scenario& scenario, Fidelity fidelity);

}  // namespace foretrain

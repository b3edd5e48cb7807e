// The same training on more and more GPUs, by each of several synchronisation algorithms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/result.hpp"
#include "model/scenario/scenario.hpp"
#include "reports/plot_scaling.hpp"

namespace foretrain {

struct ScalingOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::vector<int> gpus = {1, 2, 4, 8, 16};
  std::vector<std::string> algorithms = {"ring", "parameter_server", "naive"};
  bool strong = false;  ///< the global batch stays as it is; else the batch per GPU does
  Fidelity fidelity = Fidelity::flows;
  int jobs = 1;
};

/// The overrides that put a scenario on `gpus` GPUs, filling node after node; nothing when they do not make whole
/// nodes, whole replicas or a whole batch.
std::optional<std::vector<std::string>> on_gpus(const Scenario& scenario, int gpus, bool strong);

/// Predicts every point of the figure. Points without a prediction are absent from it, and the reasons are warnings.
/// Throws ScenarioError for a scenario that cannot be read, and UsageError for one that trains nothing.
ScalingFigure predict_scaling(const ScalingOptions& options);

}  // namespace foretrain

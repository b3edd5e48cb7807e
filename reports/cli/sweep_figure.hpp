// Predictions over the values of one key, for `foretrain plot sweep`.
#pragma once

#include <string>
#include <vector>

#include "model/result.hpp"
#include "reports/plot_sweep.hpp"

namespace foretrain {

struct SweepFigureOptions {
  std::string file;
  std::vector<std::string> variations;  ///< the first is the axis; the others make one curve per combination
  std::vector<std::string> overrides;
  Fidelity fidelity = Fidelity::flows;
  int jobs = 1;
};

/// Predicts every point. A single curve of training steps comes with its parts: compute, exposed communication and what
/// else takes time. Points without a prediction are absent, and the reasons are warnings. Throws UsageError for an axis
/// whose values are not numbers of one dimension, ScenarioError for a scenario that cannot be read.
SweepFigure predict_sweep(const SweepFigureOptions& options);

}  // namespace foretrain

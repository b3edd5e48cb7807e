// What a subcommand says of a scenario, for others that say it, too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/cli/plot.hpp"
#include "reports/explain/explanation.hpp"
#include "reports/figure/plot_scaling.hpp"
#include "reports/memory_report.hpp"

namespace foretrain {

/// Of the first file. With the result's timeline.
Explanation explanation_of(const PlotOptions& options);

/// Throws ScenarioError for a scenario that trains nothing.
MemoryReport memory_report(const std::string& file, const std::vector<std::string>& overrides);

struct ScalingOptions {
  std::vector<int> gpus = {1, 2, 4, 8, 16};
  std::vector<std::string> algorithms = {"ring", "parameter_server", "naive"};
  bool strong = false;  ///< the global batch stays as it is; else the batch per GPU does
};

/// Predicts every point. Those without a prediction are absent, and `tell` is told why.
ScalingFigure predict_scaling(const PlotOptions& shared, const ScalingOptions& options,
                              const std::function<void(const std::string&)>& tell);

}  // namespace foretrain

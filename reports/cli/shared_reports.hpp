// Reports of subcommands that other subcommands print, too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/cli/plot.hpp"
#include "reports/explain/explanation.hpp"
#include "reports/figure/plot.hpp"
#include "reports/studies/memory_report.hpp"
#include "reports/studies/plan_report.hpp"

namespace foretrain {

/// Of the first file, with the result's timeline; `what_ifs` as what_if_fidelity() where nothing is given.
Explanation explanation_of(const PlotOptions& options, std::optional<Fidelity> what_ifs);

/// The events of a trace of a profiler, from its first one on: rows of their own, or of the process `rank_class`.
/// Throws UsageError where it has none.
std::vector<TimelineEntry> measured_entries(const std::string& file, int rank_class = 0);

/// The best plans for the first file's training, the fastest first.
PlanReport plan_report(const PlotOptions& options);

/// Dimensions of a search in which these keys, whole or their last words, keep the scenario's values, with these
/// extras. Throws UsageError for a key in which plans do not differ, and for unknown extras.
PlanDimensions plan_dimensions(const std::vector<std::string>& fixed, const std::vector<std::string>& allowed = {});

/// Throws ScenarioError for a scenario that trains nothing.
MemoryReport memory_report(const std::string& file, const std::vector<std::string>& overrides);

/// Each file's training on options.gpus by options.algorithms. Points without a prediction are absent, and `tell` is
/// given the reason.
std::vector<ScalingChart> predict_scaling(const PlotOptions& options,
                                          const std::function<void(const std::string&)>& tell);

}  // namespace foretrain

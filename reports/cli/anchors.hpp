// Predictions relative to measured runs of the same model (reports/measured/anchor.hpp).
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/scenario/load/cases.hpp"
#include "reports/cli/workers.hpp"
#include "reports/measured/anchor.hpp"

namespace foretrain {

/// Anchors of a table's cases, by the name in their column `anchor`.
struct Anchors {
  std::map<std::string, Anchor> by_name;
  std::set<std::size_t> runs;  ///< the cases that they come from

  /// Of a case that has one and is none itself; else nothing.
  [[nodiscard]] const Anchor* of(const std::vector<Case>& cases, std::size_t index) const;
};

/// From the first `count` steps of each name that are measured and predicted.
Anchors anchors_of(const std::vector<Case>& cases, const std::vector<Outcome>& outcomes, int count);

/// Predicts the cases that have an anchor anew, relative to it, and puts these predictions in the place of theirs.
void anchor_outcomes(const std::vector<Case>& cases, const Anchors& anchors, Fidelity fidelity, int jobs,
                     std::vector<Outcome>& outcomes);

/// A user's own runs, beside their predictions.
struct MeasuredRuns {
  std::string table;
  std::vector<Case> rows;
  std::vector<Result> results;
  std::vector<std::pair<std::string, AnchorRun>> steps;  ///< the training steps among them, and their models
};

/// With these overrides in each of them. Throws UsageError where one of them cannot be predicted.
MeasuredRuns measured_runs(const std::string& table, const std::vector<std::string>& settings, Fidelity fidelity,
                           int jobs);

/// Training steps are anchored by training steps, which tell computing from the network; everything else by the median
/// of measured over predicted time of all runs.
Result predict_beside(const MeasuredRuns& runs, const Scenario& scenario, Fidelity fidelity);
Result predict_row_beside(const MeasuredRuns& runs, const Case& row, Fidelity fidelity);

}  // namespace foretrain

#include "reports/cli/anchors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "reports/cli/options.hpp"
#include "reports/measured/measured.hpp"
#include "reports/print/number.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

bool measures_time(const Case& row) {
  return std::ranges::any_of(row.measured,
                             [](const Measurement& m) { return m.quantity != MeasuredQuantity::memory_per_gpu; });
}

const std::string* trained_model(const Scenario& scenario) {
  const auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  return train == nullptr ? nullptr : &train->model.name;
}

/// Those of the scenario's model; all where it has none.
std::vector<AnchorRun> steps_like(const Scenario& scenario, const MeasuredRuns& runs) {
  std::vector<AnchorRun> of_model, all;
  for (const auto& [model, run] : runs.steps) {
    all.push_back(run);
    if (model == *trained_model(scenario)) of_model.push_back(run);
  }
  return of_model.empty() ? all : of_model;
}

/// The scenario's prediction, relative to the anchor's runs; `source` says which these are.
Result predict_anchored(const Scenario& scenario, Fidelity fidelity, const Anchor& anchor, const std::string& source) {
  return anchored(predict(computing_slower(scenario, anchor.computing), fidelity), anchor, source);
}

}  // namespace

const Anchor* Anchors::of(const std::vector<Case>& cases, std::size_t index) const {
  const auto found = by_name.find(cases[index].anchor);
  return found == by_name.end() || runs.contains(index) ? nullptr : &found->second;
}

Anchors anchors_of(const std::vector<Case>& cases, const std::vector<Outcome>& outcomes, int count) {
  Anchors anchors;
  std::map<std::string, std::vector<AnchorRun>> runs;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& row = cases[i];
    if (row.anchor.empty() || !measures_time(row) || !outcomes[i].result) continue;
    std::vector<AnchorRun>& known = runs[row.anchor];
    if (std::cmp_greater_equal(known.size(), count)) continue;
    known.push_back(anchor_run(row, *outcomes[i].result));
    anchors.runs.insert(i);
  }
  for (const auto& [name, known] : runs) anchors.by_name[name] = anchor_of(known);
  return anchors;
}

void anchor_outcomes(const std::vector<Case>& cases, const Anchors& anchors, Fidelity fidelity, int jobs,
                     std::vector<Outcome>& outcomes) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (anchors.of(cases, i) != nullptr) rows.push_back(i);
  }
  if (rows.empty()) return;
  const Predictor predictor = [&](std::size_t k) {
    const Case& row = cases[rows[k]];
    const Scenario scenario = planned_scenario(document_of(row), row.name, fidelity);
    Result result = predict_anchored(scenario, fidelity, *anchors.of(cases, rows[k]), row.anchor);
    result.provenance.clear();
    return result;
  };
  std::vector<Outcome> anew = predict_with_progress(rows.size(), jobs, predictor);
  for (std::size_t k = 0; k < rows.size(); ++k) outcomes[rows[k]] = std::move(anew[k]);
}

MeasuredRuns measured_runs(const std::string& table, const std::vector<std::string>& settings, Fidelity fidelity,
                           int jobs) {
  MeasuredRuns runs{table, with_overrides(read_cases(table), settings), {}, {}};
  std::vector<Outcome> outcomes = predict_cases(runs.rows, fidelity, jobs);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].result) throw UsageError("--anchor: " + runs.rows[i].name + ": " + outcomes[i].error);
    runs.results.push_back(std::move(*outcomes[i].result));
    const Result& result = runs.results.back();
    if (!result.train()) continue;
    runs.steps.emplace_back(*trained_model(scenario_of(runs.rows[i])), anchor_run(runs.rows[i], result));
  }
  return runs;
}

Result predict_beside(const MeasuredRuns& runs, const Scenario& scenario, Fidelity fidelity) {
  if (trained_model(scenario) != nullptr) {
    if (const std::vector<AnchorRun> steps = steps_like(scenario, runs); !steps.empty()) {
      const Anchor anchor = anchor_of(steps);
      return predict_anchored(scenario, fidelity, anchor, anchor_text(anchor) + " of " + runs.table);
    }
  }
  std::vector<Comparison> comparisons;
  for (std::size_t i = 0; i < runs.rows.size(); ++i) {
    const std::vector<Comparison> of_run = compare(runs.rows[i], runs.results[i]);
    comparisons.insert(comparisons.end(), of_run.begin(), of_run.end());
  }
  const std::string source =
      fmt::format("median of measured over predicted time, {} of {}", counted(runs.rows.size(), "run"), runs.table);
  return anchored(predict(scenario, fidelity), time_factor(comparisons), source);
}

Result predict_row_beside(const MeasuredRuns& runs, const Case& row, Fidelity fidelity) {
  Scenario scenario = planned_scenario(document_of(row), row.name, fidelity);
  scenario.name = row.name;  // the base's name would be the same for all rows
  Result result = predict_beside(runs, scenario, fidelity);
  result.provenance.clear();
  return result;
}

}  // namespace foretrain

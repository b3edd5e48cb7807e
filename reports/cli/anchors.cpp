#include "reports/cli/anchors.hpp"

#include <algorithm>
#include <utility>

#include "model/job/calibrated_uncertainty.hpp"
#include "reports/cli/options.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

bool measures_time(const Case& row) {
  return std::ranges::any_of(row.measured,
                             [](const Measurement& m) { return m.quantity != MeasuredQuantity::memory_per_gpu; });
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

Result predict_anchored(const Scenario& scenario, Fidelity fidelity, const Anchor& anchor, const std::string& source) {
  const Scenario slower = computing_slower(scenario, anchor.computing);
  Result result = predict(slower, fidelity);
  set_calibrated_uncertainty(slower, result);
  return anchored(std::move(result), anchor, source);
}

}  // namespace foretrain

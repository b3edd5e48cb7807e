#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "model/base/error.hpp"
#include "model/base/words.hpp"
#include "reports/cli/case_tables.hpp"
#include "reports/cli/plot.hpp"
#include "reports/measured/rates.hpp"

namespace foretrain {

namespace {

/// A measured row, and what it says.
struct RateCase {
  Case row;
  Scenario scenario;
};

RateKind kind_of(const PlotOptions& options) {
  if (options.kind.empty()) return RateKind::products;
  if (const std::optional<RateKind> named = value_of<RateKind>(options.kind)) return *named;
  throw UsageError(fmt::format("--kind: there is no {}; write products, attention or collectives", options.kind));
}

std::vector<RateCase> read_rates(const PlotOptions& options, RateKind kind) {
  std::vector<RateCase> cases;
  for (Case& row : read_tables(options.cases.empty() ? shipped_tables() : options.cases)) {
    if (row.measured.empty() || !wanted(row, options.where)) continue;
    Scenario scenario = scenario_of(row);
    if (is_of(kind, scenario)) cases.push_back({std::move(row), std::move(scenario)});
  }
  if (cases.empty()) {
    throw UsageError(
        fmt::format("plot rates: no row of the tables measures {} on GPUs{}; write another --kind or --cases",
                    name(kind), options.where.empty() ? "" : " where --where holds"));
  }
  return cases;
}

/// Leaves the cases on these nodes. Throws UsageError for one on which there is none.
void keep_nodes(std::vector<RateCase>& cases, const PlotOptions& options, RateKind kind) {
  if (options.nodes.empty()) return;
  std::vector<std::string> known;
  for (const RateCase& one : cases) known.push_back(one.scenario.cluster.node.name);
  std::ranges::sort(known);
  const auto repeated = std::ranges::unique(known);
  known.erase(repeated.begin(), repeated.end());
  for (const std::string& node : options.nodes) {
    if (std::ranges::find(known, node) != known.end()) continue;
    throw UsageError(fmt::format("plot rates: --node {}: no {} were measured there; they were on {}", node, name(kind),
                                 fmt::join(known, ", ")));
  }
  std::erase_if(cases, [&](const RateCase& one) {
    return std::ranges::find(options.nodes, one.scenario.cluster.node.name) == options.nodes.end();
  });
}

}  // namespace

ExitStatus plot_rates(const PlotOptions& options) {
  RateFigure figure{kind_of(options), {}};
  std::vector<RateCase> cases = read_rates(options, figure.kind);
  keep_nodes(cases, options, figure.kind);
  std::vector<Case> rows;
  for (const RateCase& one : cases) rows.push_back(one.row);
  const std::vector<Outcome> outcomes = predict_or_warn(options, rows);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (outcomes[i].result) add_case(figure, rows[i], cases[i].scenario, *outcomes[i].result);
  }
  draw(options, to_figure(figure));
  const bool complete = std::ranges::all_of(outcomes, [](const Outcome& one) { return one.result.has_value(); });
  return complete ? ExitStatus::success : ExitStatus::prediction_failed;
}

}  // namespace foretrain

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/words.hpp"
#include "reports/cli/case_tables.hpp"
#include "reports/cli/plot.hpp"
#include "reports/measured/rates.hpp"

namespace foretrain {

namespace {

struct RateOptions {
  RateKind kind = RateKind::products;
  std::vector<std::string> tables;  ///< none: those that come with the program
  std::vector<std::string> nodes;   ///< none: all
  std::vector<std::string> where;
};

/// A measured row, and what it says.
struct RateCase {
  Case row;
  Scenario scenario;
};

std::vector<RateCase> read_rates(const RateOptions& options) {
  std::vector<RateCase> cases;
  for (Case& row : read_tables(options.tables.empty() ? shipped_tables() : options.tables)) {
    if (row.measured.empty() || !wanted(row, options.where)) continue;
    Scenario scenario = scenario_of(row);
    if (is_of(options.kind, scenario)) cases.push_back({std::move(row), std::move(scenario)});
  }
  if (cases.empty()) {
    throw UsageError(
        fmt::format("plot rates: no row of the tables measures {} on GPUs{}; write another --kind or --cases",
                    name(options.kind), options.where.empty() ? "" : " where --where holds"));
  }
  return cases;
}

/// Leaves the cases on these nodes. Throws UsageError for one on which there is none.
void keep_nodes(std::vector<RateCase>& cases, const RateOptions& options) {
  if (options.nodes.empty()) return;
  std::vector<std::string> known;
  for (const RateCase& one : cases) known.push_back(one.scenario.cluster.node.name);
  std::ranges::sort(known);
  const auto repeated = std::ranges::unique(known);
  known.erase(repeated.begin(), repeated.end());
  for (const std::string& node : options.nodes) {
    if (std::ranges::find(known, node) != known.end()) continue;
    throw UsageError(fmt::format("plot rates: --node {}: no {} were measured there; they were on {}", node,
                                 name(options.kind), fmt::join(known, ", ")));
  }
  std::erase_if(cases, [&](const RateCase& one) {
    return std::ranges::find(options.nodes, one.scenario.cluster.node.name) == options.nodes.end();
  });
}

ExitStatus draw_rates(const PlotOptions& shared, const RateOptions& options) {
  std::vector<RateCase> cases = read_rates(options);
  keep_nodes(cases, options);
  std::vector<Case> rows;
  for (const RateCase& one : cases) rows.push_back(one.row);
  const std::vector<Outcome> outcomes = predict_cases(shared, rows);
  RateFigure figure{options.kind, {}};
  bool complete = true;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (outcomes[i].result) {
      add_case(figure, rows[i], cases[i].scenario, *outcomes[i].result);
      continue;
    }
    complete = false;
    warn(rows[i].name + ": " + outcomes[i].error);
  }
  draw(shared, to_figure(figure));
  return complete ? ExitStatus::success : ExitStatus::prediction_failed;
}

void add_kind(CLI::App& command, RateKind& kind) {
  const auto choose = [&kind](const std::string& word) {
    const std::optional<RateKind> named = value_of<RateKind>(word);
    if (!named)
      throw CLI::ValidationError("--kind",
                                 fmt::format("there is no {}; write products, attention or collectives", word));
    kind = *named;
  };
  command.add_option_function<std::string>("--kind", choose, "what is drawn (default: products)")
      ->type_name("products|attention|collectives");
}

}  // namespace

void add_plot_rates(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<RateOptions>();
  CLI::App* command = add_plot_command(
      plot, status,
      {"rates", "rates of operators and collectives over their size, predicted and measured: a panel for each machine",
       nullptr, nullptr, must_draw | takes_fidelity | takes_jobs},
      [options](const PlotOptions& shared) { return draw_rates(shared, *options); });
  add_kind(*command, options->kind);
  command
      ->add_option("--cases", options->tables, "tables with measured.* columns (default: all that come with foretrain)")
      ->type_name("CASES.csv");
  command->add_option("--node", options->nodes, "only what was measured on these")
      ->delimiter(',')
      ->type_name("NAME,NAME,…");
  add_conditions(*command, options->where);
}

}  // namespace foretrain

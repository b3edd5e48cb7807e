#include <memory>

#include "model/base/error.hpp"
#include "model/base/units.hpp"
#include "reports/cli/plot.hpp"

namespace foretrain {

namespace {

constexpr PlotKind plot_kinds[] = {
    {"topology", "links of a node, and the fabric of a scenario", "FILE", "a node's file or name, or a scenario", "set",
     plot_topology},
    {"scaling", "throughput and efficiency over GPU count, by synchronisation algorithm", "FILE",
     "scenarios that train a model", "many band fidelity set jobs gpus algorithms", plot_scaling},
    {"breakdown", "step time breakdown, one stacked bar per scenario", "FILE", "scenarios that train a model",
     "many draw fidelity set jobs rates", plot_breakdown, "one bar per combination of values, as in `foretrain sweep`"},
    {"map", "parameter servers against ring all-reduce: a heat map of a sweep", "RESULTS.csv",
     "tables with rings and parameter servers", "many x y panels", plot_map},
    {"sweep", "time over the values of a key, with the best value", "FILE", "the scenario to vary",
     "vary band fidelity set jobs quantity", plot_sweep,
     "the axis, numbers or names, as in `foretrain sweep`; further ones make a curve for each combination"},
    {"cases", "measured and predicted steps over a column of a table", "CASES.csv",
     "a table with measured.step_time or measured.time", "draw band fidelity jobs x panels curve where", plot_cases},
    {"replay", "timeline of a replayed graph, measured and predicted", "MEASUREMENTS",
     "what `foretrain replay -o` wrote, or replay-NAME.json", "draw run streams until", plot_replay},
    {"latency", "memory latency over working set, measured and predicted", "CALIBRATION",
     "what `foretrain calibrate -o` wrote", "draw", plot_latency},
    {"memory-timeline", "GPU memory by part over the step", "FILE", "a scenario that trains a model", "draw set",
     plot_memory},
    {"timeline", "timeline of tasks", "FILE", "a scenario of tasks, a collective or a training step",
     "draw fidelity set until beside", plot_timeline},
    {"attention", "time and memory of attention over sequence length, by algorithm", "FILE",
     "a scenario with one attention operator", "set constant-tokens", plot_attention},
    {"roofline", "roofline of operators: FLOP/s over FLOP per byte", "FILE",
     "scenarios: an operator, tasks, or training, whose operators are added up", "any set measurements", plot_roofline},
    {"goodput", "goodput over the checkpoint interval", "FILE", "scenarios with cluster.failures", "many fidelity set",
     plot_goodput}};

void dress(Figure& figure, const PlotOptions& options) {
  name_series(figure, options.labels);
  figure.width_cm = options.width_cm;
  if (!options.title) return;
  (figure.panels.size() == 1 ? figure.panels.front().title : figure.title) = *options.title;
}

}  // namespace

Seconds end_of(const PlotOptions& options) {
  if (options.until.empty()) return Seconds::infinity();
  try {
    return parse_quantity<Seconds>(options.until);
  } catch (const UnitError& error) {
    throw UsageError("plot: --until " + options.until + ": " + error.got() + "; a time, such as 2 ms");
  }
}

ExitStatus draw(const PlotOptions& options, Figure figure) {
  dress(figure, options);
  const std::string picture = options.output.empty() ? "" : to_picture(figure, *picture_format(options.output));
  if (!options.table.empty()) write_file(options.table, to_csv(figure));
  if (!options.output.empty()) write_file(options.output, picture);
  return ExitStatus::success;
}

ExitStatus show(const PlotOptions& options, Figure figure, const std::string& text, bool complete) {
  if (!options.output.empty() || !options.table.empty()) draw(options, std::move(figure));
  print_page(text);
  return complete ? ExitStatus::success : ExitStatus::prediction_failed;
}

Span range_of(const Outcome& outcome) {
  if (!outcome.result) return {};
  const Result& result = *outcome.result;
  const bool says = result.uncertainty_high > Seconds(0);
  return says ? Span{result.uncertainty_low.value(), result.uncertainty_high.value()}
              : Span{result.time().value(), result.time().value()};
}

std::vector<Outcome> predict_or_warn(const PlotOptions& options, const std::vector<Case>& cases) {
  std::vector<Outcome> outcomes = predict_cases(cases, options.fidelity, options.jobs);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!outcomes[i].result) warn(cases[i].name + ": " + outcomes[i].error);
  }
  return outcomes;
}

void add_plot(CLI::App& app, ExitStatus& status) {
  CLI::App* plot = app.add_subcommand(
      "plot", "Draw pictures (SVG, PNG, PDF); for predicted against measured: `foretrain validate -o`");
  plot->require_subcommand(1);
  for (const PlotKind& kind : plot_kinds) {
    const auto options = std::make_shared<PlotOptions>();
    CLI::App* command = plot->add_subcommand(kind.name, kind.what);
    add_plot_options(*command, kind, *options);
    command->callback([options, &status, run = kind.run] { status = run(*options); });
  }
}

}  // namespace foretrain

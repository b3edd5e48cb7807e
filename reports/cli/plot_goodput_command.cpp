// Goodput over the interval between checkpoints: simulated, and by Daly's formula.
#include <fmt/format.h>

#include <cmath>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/curves.hpp"
#include "reports/print/number.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

CurveChart chart_of(const Result& result) {
  const TrainResult::Goodput& goodput = *result.train()->goodput;
  CurveChart chart{.title = result.scenario, .axis = "steps between checkpoints"};
  chart.scale = {"goodput (%)", 0.01, format_percent};
  Curve simulated{"simulated", {}}, formula{"Daly's formula", {}};
  for (const IntervalChoice& tried : goodput.intervals->tried) {
    chart.places.push_back(tried.every);
    chart.labels.push_back(std::to_string(tried.every));
    simulated.values.push_back(tried.goodput);
    formula.values.push_back(
        daly_goodput(tried.every * result.train()->step_time, goodput.blocked, goodput.recovery, goodput.mtbf));
  }
  chart.curves = {std::move(simulated)};
  if (goodput.intervals->daly) chart.curves.push_back(std::move(formula));
  return chart;
}

void mark(Panel& panel, const char* whose, const IntervalChoice& choice, int up) {
  const Point at{static_cast<double>(choice.every), choice.goodput * 100.0};
  panel.series.push_back({.colour = "#333333", .points = {at}, .dot = Dot::ring, .dot_size = 1.4});
  panel.labels.push_back(
      {.text = fmt::format("{}: {}", whose, grouped(std::to_string(choice.every))), .x = at.x, .y = at.y, .up = up});
}

/// Daly's and the best interval are marked.
Panel panel_of(const CurveChart& chart, const IntervalSearch& search) {
  Panel panel = to_panel(chart, 420, 280);
  for (Series& series : panel.series) series.at_end = false;
  if (search.daly)
    panel.series.back() = {.name = "Daly's formula", .points = panel.series.back().points, .line = 1.5, .dashed = true};
  panel.x = {.name = chart.axis, .logarithmic = true};
  const double lowest = span_of(chart.curves, chart.curves.size()).low;
  panel.y = {.name = chart.scale.name, .low = std::floor(lowest * 10.0) * 10.0, .high = 100.0, .grid = true};
  mark(panel, "best", search.best, -22);
  if (search.daly && search.daly->every != search.best.every) mark(panel, "Daly", *search.daly, -38);
  return panel;
}

}  // namespace

ExitStatus plot_goodput(const PlotOptions& options) {
  Figure figure{.columns = 2, .legend = Legend::shared};
  std::string text;
  for (const std::string& file : options.files) {
    const Result result = predict(load_scenario(file, options.overrides), options.fidelity);
    if (!result.train() || !result.train()->goodput || !result.train()->goodput->intervals) {
      throw UsageError("plot goodput: " + file + " has no failures and checkpoints; state cluster.failures and " +
                       "workload.train.checkpoint");
    }
    const CurveChart chart = chart_of(result);
    figure.panels.push_back(panel_of(chart, *result.train()->goodput->intervals));
    auto rows = cells_of(chart, "steps");
    rows.front().emplace_back("worked between");
    for (std::size_t i = 0; i < chart.places.size(); ++i) {
      rows[i + 1].push_back(format_seconds(chart.places[i] * result.train()->step_time));
    }
    text += fmt::format("{}{}: goodput by interval between checkpoints\n\n{}", text.empty() ? "" : "\n", chart.title,
                        table_text(rows));
  }
  return show(options, figure, text);
}

}  // namespace foretrain

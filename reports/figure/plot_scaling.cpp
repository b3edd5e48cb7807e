#include "reports/figure/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/error.hpp"
#include "model/base/format.hpp"

namespace foretrain {

namespace {

/// At one number of GPUs.
std::string slowest_to_fastest(const std::vector<Curve>& curves, std::size_t place) {
  std::vector<Curve> here;
  for (const Curve& curve : curves) here.push_back({"", {curve.values[place]}});
  const Span span = span_of(here, here.size());
  return span.high > 0.0 ? fmt::format("{:.2f}", span.high / span.low) : "-";
}

/// The chart of what `value` makes of each place and time; of the longest step's range the lowest.
template <typename Value>
CurveChart made_of(CurveChart chart, const Scale& scale, Value value) {
  chart.scale = scale;
  for (Curve& curve : chart.curves) {
    for (std::size_t i = 0; i < curve.values.size(); ++i) {
      if (!curve.ranges.empty() && !std::isnan(curve.values[i])) {
        curve.ranges[i] = {value(i, curve.ranges[i].high), value(i, curve.ranges[i].low)};
      }
      curve.values[i] = value(i, curve.values[i]);
    }
  }
  return chart;
}

Series ideal_line(const std::vector<double>& gpus, const std::vector<double>& ideal) {
  Series line{.name = "ideal", .at_end = true, .colour = "#6c6c6c", .line = 1.5, .dashed = true};
  for (std::size_t i = 0; i < gpus.size(); ++i) line.points.push_back({gpus[i], ideal[i]});
  return line;
}

Panel throughput_panel(const ScalingChart& chart) {
  const double ideal = chart.ideal_of_a_gpu();
  if (ideal <= 0.0) throw UsageError("there is nothing to draw: " + chart.steps.title);
  Panel panel = to_panel(chart.throughput(), 380, 270);
  panel.y.logarithmic = panel.x.logarithmic;
  std::vector<double> rates;
  for (const double gpus : chart.steps.places) rates.push_back(ideal * gpus);
  panel.series.push_back(ideal_line(chart.steps.places, rates));
  return panel;
}

Panel efficiency_panel(const ScalingChart& chart) {
  Panel panel = to_panel(chart.efficiency(), 380, 190);
  panel.title = panel.subtitle = "";
  panel.y = {.name = panel.y.name, .high = 108.0, .grid = true};
  panel.series.push_back(ideal_line({chart.steps.places.front(), chart.steps.places.back()}, {100.0, 100.0}));
  return panel;
}

}  // namespace

double ScalingChart::ideal_of_a_gpu() const {
  for (std::size_t i = 0; i < steps.places.size(); ++i) {
    double best = 0.0;
    for (const Curve& curve : steps.curves) {
      if (!std::isnan(curve.values[i])) best = std::max(best, batches[i] / curve.values[i] / steps.places[i]);
    }
    if (best > 0.0) return best;
  }
  return 0.0;
}

CurveChart ScalingChart::throughput() const {
  return made_of(steps, {samples + "/s", 1.0, format_count},
                 [&](std::size_t i, double time) { return batches[i] / time; });
}

CurveChart ScalingChart::efficiency() const {
  const Scale share = {"scaling efficiency (%)", 0.01, [](double part) { return fmt::format("{:.0f} %", 100 * part); }};
  return made_of(steps, share, [&, ideal = ideal_of_a_gpu()](std::size_t i, double time) {
    return batches[i] / time / (ideal * steps.places[i]);
  });
}

std::string to_text(const std::vector<ScalingChart>& charts) {
  std::string text;
  for (const auto& [steps, samples, batches] : charts) {
    auto rows = cells_of(steps, steps.axis);
    rows.front().emplace_back("slowest / fastest");
    for (std::size_t i = 0; i < steps.places.size(); ++i) rows[i + 1].push_back(slowest_to_fastest(steps.curves, i));
    text += fmt::format("{}{}: time of one step, {}\n\n{}", text.empty() ? "" : "\n", steps.title, steps.subtitle,
                        table_text(rows));
  }
  return text;
}

Figure to_figure(const std::vector<ScalingChart>& charts) {
  Figure figure{.columns = charts.size()};
  for (const ScalingChart& chart : charts) figure.panels.push_back(throughput_panel(chart));
  for (const ScalingChart& chart : charts) figure.panels.push_back(efficiency_panel(chart));
  return figure;
}

}  // namespace foretrain

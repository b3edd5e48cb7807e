#include "reports/figure/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace foretrain {

namespace {

/// Index of a curve's minimum; nothing where it has no value.
std::optional<std::size_t> best_of(const Curve& curve) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < curve.values.size(); ++i) {
    if (!std::isnan(curve.values[i]) && (!best || curve.values[i] < curve.values[*best])) best = i;
  }
  return best;
}

/// Logarithmic where whole steps span decades; parts that are too small for that leave the axis at its bottom.
void set_time_axis(Axis& axis, const SweepChart& sweep) {
  const std::vector<Curve>& curves = sweep.times.curves;
  const double unit = sweep.times.scale.unit;
  const double shortest = span_of(curves, sweep.steps).low / unit, longest = span_of(curves, curves.size()).high / unit;
  axis.logarithmic = spans_decades(shortest, longest);
  if (!axis.logarithmic) return;
  const double room = sweep.steps < curves.size() ? 100.0 : 1.4;  // two decades for the parts below
  axis.low = shortest / room;
  axis.high = longest * 1.4;
}

/// A single line has a name in tables alone.
Panel lines_panel(const CurveChart& chart) {
  Panel panel = to_panel(chart, 420, 270);
  if (chart.curves.size() > 1) return panel;
  Series& line = panel.series.front();
  line.table_name = std::exchange(line.name, "");
  line.at_end = false;
  return panel;
}

Figure quantities_figure(const SweepChart& sweep) {
  Figure figure{.columns = 2};
  for (const CurveChart& chart : sweep.quantities) {
    figure.panels.push_back(chart.places.empty() ? to_bars(chart, 420) : lines_panel(chart));
  }
  (figure.panels.size() == 1 ? figure.panels.front().title : figure.title) = sweep.times.title;
  return figure;
}

}  // namespace

std::string to_text(const SweepChart& sweep) {
  const CurveChart& times = sweep.times;
  std::string text = fmt::format("{}\n\n{}\n", times.title, table_text(cells_of(times, sweep.key)));
  for (std::size_t c = 0; c < sweep.steps; ++c) {
    const Curve& curve = times.curves[c];
    const auto best = best_of(curve);
    if (!best) continue;
    text += fmt::format("  {} is shortest at {}: {}\n", curve.name, times.labels[*best],
                        times.scale.text(curve.values[*best]));
  }
  for (const CurveChart& chart : sweep.quantities) {
    if (chart.scale.name.starts_with("time (")) continue;  // it is reported already
    text += fmt::format("\n{}\n\n{}", chart.scale.name, table_text(cells_of(chart, sweep.key)));
  }
  return text;
}

Figure to_figure(const SweepChart& sweep) {
  if (!sweep.quantities.empty()) return quantities_figure(sweep);
  Panel panel = to_panel(sweep.times, 520, 300);
  set_time_axis(panel.y, sweep);
  Series marks{.colour = "#333333", .dot = Dot::ring, .dot_size = 1.4};
  for (std::size_t c = 0; c < sweep.times.curves.size(); ++c) {
    Series& series = panel.series[c];
    const bool part = c >= sweep.steps;
    if (part) series.line = 1.2, series.dashed = true;
    const auto best = best_of(sweep.times.curves[c]);
    if (part || !best) continue;
    if (*best == 0 || *best + 1 == sweep.times.places.size()) continue;  // at an end: better ones may lie beyond
    const Point mark = series.points[*best];
    marks.points.push_back(mark);
    if (sweep.steps > 1) continue;  // their labels would cover each other
    panel.labels.push_back(
        {.text = "best: " + sweep.times.labels[*best], .x = mark.x, .y = mark.y, .up = 16, .colour = palette[0]});
  }
  panel.series.push_back(std::move(marks));
  return {.panels = {std::move(panel)}};
}

}  // namespace foretrain

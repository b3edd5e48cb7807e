#include "reports/figure/plot_sweep.hpp"

#include <fmt/format.h>

#include <optional>

#include "model/base/format.hpp"
#include "model/scenario/keys/key_tree.hpp"

namespace foretrain {

namespace {

/// Where a curve is lowest; nothing where it has no point.
std::optional<std::size_t> best_of(const TimeCurve& curve) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < curve.times.size(); ++i) {
    if (curve.times[i] && (!best || *curve.times[i] < *curve.times[*best])) best = i;
  }
  return best;
}

/// With a tic at each value, unless these are too many to be read.
Axis value_axis(const SweepFigure& sweep) {
  constexpr std::size_t most_tics = 20;
  std::vector<std::string> labels = sweep.labels;
  const std::string unit = common_unit(labels);
  Axis axis{.name = keys::title_of(sweep.key), .logarithmic = grow_by_factors(sweep.values)};
  if (!unit.empty()) axis.name += fmt::format(" ({})", unit);
  if (labels.size() > most_tics) return axis;
  for (std::size_t i = 0; i < labels.size(); ++i) axis.tics.push_back({sweep.values[i], labels[i]});
  return axis;
}

/// Chosen for whole steps; parts that are too small for a logarithmic axis leave it at its bottom.
Axis time_axis(const SweepFigure& sweep, const TimeUnit& unit) {
  const double shortest = time_range(sweep.curves, sweep.steps).low / unit.size;
  const double longest = time_range(sweep.curves, sweep.curves.size()).high / unit.size;
  Axis axis{.name = fmt::format("time ({})", unit.name), .grid = true};
  axis.logarithmic = spans_decades(shortest, longest);
  if (!axis.logarithmic) return axis;
  const double room = sweep.steps < sweep.curves.size() ? 100.0 : 1.4;  // two decades for the parts below
  axis.low = shortest / room;
  axis.high = longest * 1.4;
  return axis;
}

}  // namespace

std::string to_text(const SweepFigure& sweep) {
  std::string text =
      fmt::format("{}\n\n{}\n", sweep.title, table_text(time_cells(sweep.key, sweep.labels, sweep.curves)));
  for (std::size_t c = 0; c < sweep.steps; ++c) {
    const TimeCurve& curve = sweep.curves[c];
    const auto best = best_of(curve);
    if (!best) continue;
    text += fmt::format("  {} is shortest at {}: {}\n", curve.name, sweep.labels[*best],
                        format_seconds(*curve.times[*best]));
  }
  return text;
}

Figure to_figure(const SweepFigure& sweep) {
  const TimeUnit unit = time_unit(time_range(sweep.curves, sweep.curves.size()).high);
  Panel panel{.title = sweep.title, .width = 520, .height = 300};
  panel.x = value_axis(sweep);
  panel.y = time_axis(sweep, unit);
  Series marks{.colour = "#333333", .dot = Dot::ring, .dot_size = 1.4};
  for (std::size_t c = 0; c < sweep.curves.size(); ++c) {
    Series series = to_series(sweep.curves[c], sweep.values, unit.size);
    const bool part = c >= sweep.steps;
    if (part) series.line = 1.2, series.dashed = true;
    panel.series.push_back(std::move(series));
    const auto best = best_of(sweep.curves[c]);
    if (part || !best) continue;
    if (*best == 0 || *best + 1 == sweep.values.size()) continue;  // at an end: better ones may lie beyond
    const Point mark = panel.series.back().points[*best];
    marks.points.push_back(mark);
    if (sweep.steps > 1) continue;  // their labels would cover each other
    panel.labels.push_back(
        {.text = "best: " + sweep.labels[*best], .x = mark.x, .y = mark.y, .up = 16, .colour = palette[0]});
  }
  panel.series.push_back(std::move(marks));
  return {.panels = {std::move(panel)}};
}

}  // namespace foretrain

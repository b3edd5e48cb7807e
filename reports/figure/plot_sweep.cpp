#include "reports/figure/plot_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "model/base/format.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "reports/print/number.hpp"

namespace foretrain {

namespace {

/// With three digits at least.
std::string value_text(double value) {
  const int decimals =
      value == 0.0 ? 0 : std::clamp(2 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, 9);
  return grouped(fmt::format("{:.{}f}", value, decimals));
}

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

std::string last_value(const SweepQuantity::Curve& curve) {
  const auto last =
      std::find_if(curve.values.rbegin(), curve.values.rend(), [](const auto& value) { return value.has_value(); });
  return last == curve.values.rend() ? "" : value_text(**last);
}

/// Named where there are several.
void name_curve(Series& series, const SweepQuantity& quantity, const SweepQuantity::Curve& curve) {
  (quantity.curves.size() > 1 ? series.name : series.told) = curve.name;
}

Panel lines_panel(const SweepFigure& sweep, const SweepQuantity& quantity) {
  Panel panel{.width = 420, .height = 270, .x = value_axis(sweep), .y = {.name = quantity.axis, .grid = true}};
  double low = std::numeric_limits<double>::infinity(), high = 0.0;
  for (const SweepQuantity::Curve& curve : quantity.curves) {
    Series series{.at_end = quantity.curves.size() > 1, .value = last_value(curve), .ranges = curve.ranges};
    name_curve(series, quantity, curve);
    series.line = 2.5;
    series.dot = Dot::own;
    series.dot_size = 0.6;
    for (std::size_t i = 0; i < sweep.values.size(); ++i) {
      series.points.push_back({sweep.values[i], curve.values[i].value_or(NAN)});
      low = std::min(low, curve.values[i].value_or(low));
      high = std::max(high, curve.values[i].value_or(high));
    }
    panel.series.push_back(std::move(series));
  }
  panel.y.logarithmic = spans_decades(low, high);
  return panel;
}

/// A bar for each name and curve, the first on top, its value behind it and its range as a line over it.
Panel bars_panel(const SweepFigure& sweep, const SweepQuantity& quantity) {
  const std::size_t names = sweep.labels.size(), curves = quantity.curves.size();
  constexpr int bar_height = 18, between = 14;
  Panel panel{.width = 420, .height = static_cast<int>(names * (bar_height * curves + between)), .rows = true};
  panel.x = {.name = quantity.axis, .grid = true};
  panel.y = {.low = 0.5, .high = static_cast<double>(names) + 0.5};
  Series ranges{.colour = "#222222", .line = 1.5};
  for (std::size_t c = 0; c < curves; ++c) {
    const SweepQuantity::Curve& curve = quantity.curves[c];
    Series bars{.colour = area_palette.at(c % area_palette.size())};
    name_curve(bars, quantity, curve);
    for (std::size_t i = 0; i < names; ++i) {
      if (!curve.values[i]) continue;
      const double thick = 0.8 / static_cast<double>(curves), value = *curve.values[i];
      const double low = static_cast<double>(names - i) + 0.4 - thick * static_cast<double>(c + 1);
      bars.boxes.push_back({0.0, value, low, low + thick * 0.94});
      double end = value;
      if (!curve.ranges.empty()) {
        const double row = low + 0.47 * thick;
        const Span range = curve.ranges[i];
        ranges.points.insert(ranges.points.end(), {{range.low, row}, {range.high, row}, {0.0, NAN}});
        end = std::max(end, range.high);
        bars.ranges.push_back(range);
      }
      panel.x.high = std::max(panel.x.high, end);
      panel.labels.push_back(
          {.text = value_text(value), .x = end, .y = low + 0.47 * thick, .pin = Pin::left, .right = 6});
    }
    panel.series.push_back(std::move(bars));
  }
  for (std::size_t i = 0; i < names; ++i) panel.y.tics.push_back({static_cast<double>(names - i), sweep.labels[i]});
  if (!ranges.points.empty()) panel.series.push_back(std::move(ranges));
  return panel;
}

Figure quantities_figure(const SweepFigure& sweep) {
  Figure figure{.columns = 2};
  for (const SweepQuantity& quantity : sweep.quantities) {
    figure.panels.push_back(sweep.values.empty() ? bars_panel(sweep, quantity) : lines_panel(sweep, quantity));
  }
  (figure.panels.size() == 1 ? figure.panels.front().title : figure.title) = sweep.title;
  return figure;
}

std::string quantity_text(const SweepFigure& sweep, const SweepQuantity& quantity) {
  std::vector<std::vector<std::string>> rows = {{sweep.key}};
  for (const std::string& label : sweep.labels) rows.push_back({label});
  for (const SweepQuantity::Curve& curve : quantity.curves) {
    rows.front().push_back(curve.name);
    for (std::size_t i = 0; i < sweep.labels.size(); ++i) {
      rows[i + 1].push_back(curve.values[i] ? value_text(*curve.values[i]) : "-");
    }
  }
  return fmt::format("\n{}\n\n{}", quantity.axis, table_text(rows));
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
  for (const SweepQuantity& quantity : sweep.quantities) {
    if (!quantity.axis.starts_with("time (")) text += quantity_text(sweep, quantity);  // which is told already
  }
  return text;
}

Figure to_figure(const SweepFigure& sweep) {
  if (!sweep.quantities.empty()) return quantities_figure(sweep);
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

#include "reports/figure/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>
#include <utility>

#include "model/base/format.hpp"
#include "reports/print/names.hpp"
#include "reports/print/number.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

/// With a tic at each place, unless these are too many to be read; the unit that all have goes into the name.
Axis places_axis(const CurveChart& chart) {
  constexpr std::size_t most_tics = 20;
  std::vector<std::string> labels = chart.labels;
  const std::string unit = common_unit(labels);
  Axis axis{.name = chart.axis, .logarithmic = grow_by_factors(chart.places)};
  if (!unit.empty()) axis.name += fmt::format(" ({})", unit);
  if (labels.size() > most_tics) return axis;
  for (std::size_t i = 0; i < labels.size(); ++i) axis.tics.push_back({chart.places[i], labels[i]});
  return axis;
}

Series line_of(const Curve& curve, const CurveChart& chart) {
  constexpr std::size_t most_dots = 40;
  const Scale& scale = chart.scale;
  Series series{.name = spoken(curve.name), .at_end = true, .line = 2.5, .dot = Dot::own, .dot_size = 0.6};
  if (chart.places.size() > most_dots) series.dot = Dot::none;
  for (std::size_t i = 0; i < chart.places.size(); ++i) {
    const double value = curve.values[i];
    series.points.push_back({chart.places[i], value / scale.unit});
    if (!std::isnan(value) && scale.text != nullptr) series.value = scale.text(value);
  }
  for (const Span& range : curve.ranges) series.ranges.push_back({range.low / scale.unit, range.high / scale.unit});
  return series;
}

/// A bar from zero to a curve's value.
void add_bar(Panel& panel, Series& bars, Series& lines, const CurveChart& chart, std::size_t c, std::size_t i) {
  const Curve& curve = chart.curves[c];
  const double value = curve.values[i] / chart.scale.unit, thick = 0.8 / static_cast<double>(chart.curves.size());
  const double low = static_cast<double>(chart.labels.size() - i) + 0.4 - thick * static_cast<double>(c + 1);
  const double middle = low + 0.47 * thick;
  bars.boxes.push_back({std::min(value, 0.0), std::max(value, 0.0), low, low + thick * 0.94});
  double end = std::max(value, 0.0);
  if (!curve.ranges.empty()) {
    const Span range = {curve.ranges[i].low / chart.scale.unit, curve.ranges[i].high / chart.scale.unit};
    lines.points.insert(lines.points.end(), {{range.low, middle}, {range.high, middle}, {0.0, NAN}});
    end = std::max(end, range.high);
    bars.ranges.push_back(range);
  }
  panel.x.low = std::min(panel.x.low, value);
  panel.x.high = std::max(panel.x.high, end);
  panel.labels.push_back({.text = value_text(value), .x = end, .y = middle, .pin = Pin::left, .right = 6});
}

}  // namespace

Scale time_scale(double longest, const std::string& name) {
  const TimeUnit unit = time_unit(Seconds(longest));
  return {fmt::format("{} ({})", name, unit.name), unit.size.value(),
          [](double seconds) { return format_seconds(Seconds(seconds)); }};
}

bool is_complete(const std::vector<Curve>& curves) {
  return std::ranges::none_of(curves, [](const Curve& curve) {
    return std::ranges::any_of(curve.values, [](double value) { return std::isnan(value); });
  });
}

Span span_of(const std::vector<Curve>& curves, std::size_t count) {
  Span span{std::numeric_limits<double>::infinity(), 0.0};
  for (const Curve& curve : curves | std::views::take(count)) {
    for (const double value : curve.values) {
      if (!std::isnan(value)) span = {std::min(span.low, value), std::max(span.high, value)};
    }
  }
  return span;
}

Panel to_panel(const CurveChart& chart, int width, int height) {
  Panel panel{.title = chart.title, .subtitle = chart.subtitle, .width = width, .height = height};
  const Span span = span_of(chart.curves, chart.curves.size());
  panel.x = places_axis(chart);
  panel.y = {.name = chart.scale.name, .logarithmic = spans_decades(span.low, span.high), .grid = true};
  for (const Curve& curve : chart.curves) panel.series.push_back(line_of(curve, chart));
  return panel;
}

Panel to_bars(const CurveChart& chart, int width) {
  const std::size_t names = chart.labels.size(), curves = chart.curves.size();
  constexpr int bar_height = 18, between = 14;
  Panel panel{.title = chart.title,
              .width = width,
              .height = static_cast<int>(names * (bar_height * curves + between)),
              .rows = true};
  panel.x = {.name = chart.scale.name, .grid = true};
  panel.y = {.low = 0.5, .high = static_cast<double>(names) + 0.5};
  Series ranges{.colour = "#222222", .line = 1.5};
  for (std::size_t c = 0; c < curves; ++c) {
    Series bars{.name = chart.curves[c].name, .colour = area_palette.at(c % area_palette.size())};
    if (curves == 1) bars.table_name = std::exchange(bars.name, "");
    for (std::size_t i = 0; i < names; ++i) {
      if (!std::isnan(chart.curves[c].values[i])) add_bar(panel, bars, ranges, chart, c, i);
    }
    panel.series.push_back(std::move(bars));
  }
  for (std::size_t i = 0; i < names; ++i) panel.y.tics.push_back({static_cast<double>(names - i), chart.labels[i]});
  if (!ranges.points.empty()) panel.series.push_back(std::move(ranges));
  return panel;
}

std::string value_text(double value) {
  const int decimals =
      value == 0.0 ? 0 : std::clamp(2 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, 9);
  return grouped(fmt::format("{:.{}f}", value, decimals));
}

std::vector<std::vector<std::string>> cells_of(const CurveChart& chart, const std::string& corner,
                                               const std::string& absent) {
  std::vector<std::vector<std::string>> rows = {{corner}};
  for (const std::string& label : chart.labels) rows.push_back({label});
  for (const Curve& curve : chart.curves) {
    rows.front().push_back(curve.name);
    for (std::size_t i = 0; i < chart.labels.size(); ++i) {
      rows[i + 1].push_back(std::isnan(curve.values[i]) ? absent : chart.scale.text(curve.values[i]));
    }
  }
  return rows;
}

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  TextTable table(std::string(rows.front().size(), 'r'), rows.front());
  for (std::size_t i = 1; i < rows.size(); ++i) table.add_row(rows[i]);
  return table.text(2);
}

}  // namespace foretrain

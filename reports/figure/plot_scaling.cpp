#include "reports/figure/plot_scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/format.hpp"

namespace foretrain {

namespace {

/// At one number of GPUs.
std::string slowest_to_fastest(const ScalingPanel& panel, std::size_t gpus) {
  TimeRange range;
  for (const TimeCurve& curve : panel.curves) {
    if (const auto& time = curve.times[gpus]) range = {std::min(range.low, *time), std::max(range.high, *time)};
  }
  return range.high > Seconds(0) ? fmt::format("{:.2f}", range.high / range.low) : "-";
}

Axis gpu_axis(const std::vector<int>& gpus) {
  Axis axis{.name = "GPUs", .logarithmic = grow_by_factors({gpus.begin(), gpus.end()})};
  for (const int n : gpus) axis.tics.push_back({static_cast<double>(n), std::to_string(n)});
  return axis;
}

/// Samples a second of one GPU where the fewest do the step; the best way's.
double ideal_of_a_gpu(const ScalingPanel& scaling, const std::vector<int>& gpus) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    double best = 0.0;
    for (const TimeCurve& curve : scaling.curves) {
      if (curve.times[i]) best = std::max(best, scaling.batches[i] / curve.times[i]->value() / gpus[i]);
    }
    if (best > 0.0) return best;
  }
  throw UsageError("there is nothing to draw: " + scaling.title);
}

/// A curve's values on each number of GPUs, the last of them beside its name at its end.
template <typename Value, typename Format>
Series curve_of(const TimeCurve& curve, const std::vector<int>& gpus, Value value, Format format) {
  Series series{.name = curve.name, .at_end = true, .line = 2.5, .dot = Dot::own, .dot_size = 0.6};
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const auto& time = curve.times[i];
    series.points.push_back({static_cast<double>(gpus[i]), time ? value(i, *time) : NAN});
    if (time) series.value = format(value(i, *time));
    if (curve.ranges.empty()) continue;
    const TimeRange& range = curve.ranges[i];  // the longest step has the lowest throughput
    series.ranges.push_back(time ? Span{value(i, range.high), value(i, range.low)} : Span{});
  }
  return series;
}

Series ideal_line(std::vector<Point> points) {
  return {
      .name = "ideal", .at_end = true, .colour = "#6c6c6c", .points = std::move(points), .line = 1.5, .dashed = true};
}

Panel throughput_panel(const ScalingPanel& scaling, const std::vector<int>& gpus) {
  const auto rate = [&](std::size_t i, Seconds time) { return scaling.batches[i] / time.value(); };
  Panel panel{.title = scaling.title, .subtitle = scaling.subtitle, .width = 380, .height = 270};
  panel.x = gpu_axis(gpus);
  panel.y = {.name = scaling.samples + " a second", .logarithmic = panel.x.logarithmic, .grid = true};
  const double ideal = ideal_of_a_gpu(scaling, gpus);
  std::vector<Point> points;
  for (const int n : gpus) points.push_back({static_cast<double>(n), ideal * n});
  for (const TimeCurve& curve : scaling.curves) panel.series.push_back(curve_of(curve, gpus, rate, format_count));
  panel.series.push_back(ideal_line(std::move(points)));
  return panel;
}

Panel efficiency_panel(const ScalingPanel& scaling, const std::vector<int>& gpus) {
  const double ideal = ideal_of_a_gpu(scaling, gpus);
  const auto percent = [&](std::size_t i, Seconds time) {
    return scaling.batches[i] / time.value() / (ideal * gpus[i]) * 100.0;
  };
  Panel panel{.width = 380, .height = 190};
  panel.x = gpu_axis(gpus);
  panel.y = {.name = "share of the ideal (%)", .high = 108.0, .grid = true};
  for (const TimeCurve& curve : scaling.curves) {
    panel.series.push_back(curve_of(curve, gpus, percent, [](double share) { return fmt::format("{:.0f} %", share); }));
  }
  panel.series.push_back(
      ideal_line({{static_cast<double>(gpus.front()), 100.0}, {static_cast<double>(gpus.back()), 100.0}}));
  return panel;
}

}  // namespace

std::string to_text(const ScalingFigure& scaling) {
  std::vector<std::string> gpus;
  for (const int n : scaling.gpus) gpus.push_back(std::to_string(n));
  std::string text;
  for (const ScalingPanel& panel : scaling.panels) {
    auto rows = time_cells("GPUs", gpus, panel.curves);
    rows.front().emplace_back("slowest / fastest");
    for (std::size_t i = 0; i < gpus.size(); ++i) rows[i + 1].push_back(slowest_to_fastest(panel, i));
    text += fmt::format("{}{}: time of one step, {}\n\n{}", text.empty() ? "" : "\n", panel.title, panel.subtitle,
                        table_text(rows));
  }
  return text;
}

Figure to_figure(const ScalingFigure& scaling) {
  Figure figure{.columns = scaling.panels.size()};
  for (const ScalingPanel& panel : scaling.panels) figure.panels.push_back(throughput_panel(panel, scaling.gpus));
  for (const ScalingPanel& panel : scaling.panels) figure.panels.push_back(efficiency_panel(panel, scaling.gpus));
  return figure;
}

}  // namespace foretrain

#include "reports/plot_scaling.hpp"

#include <fmt/format.h>

#include <algorithm>

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

Panel to_panel(const ScalingPanel& scaling, const std::vector<int>& gpus) {
  const auto [low, high] = time_range(scaling.curves, scaling.curves.size());
  const TimeUnit unit = time_unit(high);
  Panel panel{.title = scaling.title, .subtitle = scaling.subtitle, .width = 290, .height = 270};
  panel.x = {.name = "GPUs", .logarithmic = true};
  for (const int n : gpus) panel.x.tics.push_back({static_cast<double>(n), std::to_string(n)});
  panel.y = {.name = fmt::format("time of one step ({})", unit.name),
             .logarithmic = spans_decades(low / unit.size, high / unit.size),
             .grid = true};
  for (const TimeCurve& curve : scaling.curves) {
    panel.series.push_back(to_series(curve, {gpus.begin(), gpus.end()}, unit.size));
  }
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
  Figure figure;
  for (const ScalingPanel& panel : scaling.panels) figure.panels.push_back(to_panel(panel, scaling.gpus));
  return figure;
}

}  // namespace foretrain

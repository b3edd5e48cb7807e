#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "reports/measured/accuracy.hpp"
#include "reports/print/number.hpp"

namespace foretrain {

namespace {

/// Quantities of one dimension, which share a panel.
struct DrawnQuantity {
  std::array<std::string_view, 3> columns;
  std::string_view title, unit;
};

constexpr DrawnQuantity drawn_quantities[] = {
    {{"step_time"}, "Step time", "s"},
    {{"time_to_train"}, "Time to train", "s"},
    {{"samples_per_second", "tokens_per_second", "tokens_per_second_per_gpu"}, "Throughput, samples/s or tokens/s", ""},
    {{"time"}, "Operators and collectives", "s"},
    {{"bus_bandwidth"}, "Bus bandwidth", "B/s"},
    {{"memory_per_gpu"}, "GPU memory", "B"}};

using Group = std::vector<Comparison>;

std::string statistics_text(const std::string& name, const Group& cases) {
  const ErrorStatistics statistics = error_statistics(cases);
  return fmt::format("{}: {:.1f} %, n = {}", name, statistics.mape * 100.0, statistics.n);
}

Series dots(std::string name, const Group& cases) {
  Series series{.name = std::move(name), .dot = Dot::own, .dot_size = 0.6};
  for (const Comparison& c : cases) {
    series.points.push_back({c.measured, c.predicted});
    series.what.push_back(c.name);
  }
  return series;
}

/// The groups that are predicted worst, each by itself, the worst first; before them, all others as one.
std::vector<Series> told_apart(std::vector<Group> groups) {
  constexpr std::size_t most = 4;
  std::ranges::stable_sort(groups, std::greater(), [](const Group& group) { return error_statistics(group).mape; });
  std::vector<Series> series;
  Group others;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i < most) {
      series.push_back(dots(statistics_text(groups[i].front().group, groups[i]), groups[i]));
      series.back().colour = palette[i];
    } else {
      others.insert(others.end(), groups[i].begin(), groups[i].end());
    }
  }
  if (others.empty()) return series;
  const std::size_t count = groups.size() - most;
  Series quiet = dots(statistics_text(counted(count, "other group"), others), others);
  quiet.colour = "#b4b4b4";
  quiet.dot = Dot::circle;
  quiet.dot_size = 0.45;
  series.insert(series.begin(), std::move(quiet));
  return series;
}

/// Everything of one dimension; without series where the report has nothing of it.
Panel to_panel(const DrawnQuantity& quantity, const std::vector<Comparison>& cases) {
  Panel panel{.title = std::string(quantity.title),
              .subtitle = "mean error and number of cases; dashed: ±10 %",
              .width = 420,
              .height = 380,
              .frame = true};
  std::vector<Group> groups;
  double low = 0.0, high = 0.0;
  for (const Comparison& c : cases) {
    if (std::ranges::find(quantity.columns, c.quantity) == quantity.columns.end()) continue;
    auto group = std::ranges::find_if(groups, [&](const Group& g) { return g.front().group == c.group; });
    if (group == groups.end()) group = groups.insert(group, Group{});
    group->push_back(c);
    const auto [less, more] = std::minmax(c.measured, c.predicted);
    low = low > 0.0 ? std::min(low, less) : less;
    high = std::max(high, more);
  }
  if (groups.empty()) return panel;
  panel.x = {.name = "measured", .logarithmic = true, .unit = std::string(quantity.unit), .grid = true};
  panel.x.low = low / 1.5;
  panel.x.high = high * 1.5;
  panel.y = panel.x;
  panel.y.name = "predicted";
  for (const double factor : {1.0, 1.1, 1.0 / 1.1}) {
    panel.series.push_back({.colour = "#8c8c8c",
                            .points = {{panel.x.low, panel.x.low * factor}, {panel.x.high, panel.x.high * factor}},
                            .line = factor == 1.0 ? 1.0 : 0.8,
                            .dashed = factor != 1.0});
  }
  for (Series& series : told_apart(std::move(groups))) panel.series.push_back(std::move(series));
  return panel;
}

}  // namespace

Figure to_figure(const AccuracyReport& report) {
  Figure figure;
  for (const DrawnQuantity& quantity : drawn_quantities) {
    Panel panel = to_panel(quantity, report.cases);
    if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  }
  figure.columns = figure.panels.size() == 4 ? 2 : 3;  // no corner is left empty
  return figure;
}

}  // namespace foretrain

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "reports/accuracy.hpp"

namespace foretrain {

namespace {

struct DrawnQuantity {
  std::string_view column;
  std::string_view title;
  std::string_view unit;
};
constexpr std::array<DrawnQuantity, 6> quantities = {{{"step_time", "Step time", "s"},
                                                      {"samples_per_second", "Throughput", "samples/s"},
                                                      {"tokens_per_second", "Throughput", "tokens/s"},
                                                      {"time", "Time", "s"},
                                                      {"bus_bandwidth", "Bus bandwidth", "B/s"},
                                                      {"memory_per_gpu", "Memory per GPU", "B"}}};

/// The cases of one group as points; after the palette's last colour it begins anew with another shape.
Series to_series(const std::vector<Comparison>& group, std::size_t number) {
  static constexpr std::array shapes = {Dot::circle, Dot::square, Dot::triangle, Dot::wedge, Dot::diamond};
  const ErrorStatistics statistics = error_statistics(group);
  Series series{.name = fmt::format("{}: {:.1f} %, n = {}", group.front().group, statistics.mape * 100.0, statistics.n),
                .colour = palette[number % palette.size()],
                .dot = shapes[number / palette.size() % shapes.size()],
                .dot_size = 0.6};
  for (const Comparison& c : group) series.points.push_back({c.measured, c.predicted});
  return series;
}

/// Everything of one quantity; without series where the report has nothing of it.
Panel to_panel(const DrawnQuantity& quantity, const std::vector<Comparison>& cases) {
  Panel panel{.title = std::string(quantity.title),
              .subtitle = "mean error per group; dashed: ±10 %",
              .width = 400,
              .height = 400,
              .frame = true};
  std::vector<std::vector<Comparison>> groups;
  double low = 0.0, high = 0.0;
  for (const Comparison& c : cases) {
    if (c.quantity != quantity.column) continue;
    auto group = std::ranges::find_if(groups, [&](const auto& g) { return g.front().group == c.group; });
    if (group == groups.end()) group = groups.insert(group, std::vector<Comparison>{});
    group->push_back(c);
    const auto [less, more] = std::minmax(c.measured, c.predicted);
    low = low > 0.0 ? std::min(low, less) : less;
    high = std::max(high, more);
  }
  if (groups.empty()) return panel;
  panel.x = {.name = fmt::format("measured ({})", quantity.unit), .logarithmic = true, .grid = true};
  panel.x.low = low / 1.5;
  panel.x.high = high * 1.5;
  panel.y = panel.x;
  panel.y.name = fmt::format("predicted ({})", quantity.unit);
  for (const double factor : {1.0, 1.1, 1.0 / 1.1}) {
    panel.series.push_back({.colour = "#8c8c8c",
                            .points = {{panel.x.low, panel.x.low * factor}, {panel.x.high, panel.x.high * factor}},
                            .line = factor == 1.0 ? 1.0 : 0.8,
                            .dashed = factor != 1.0});
  }
  for (std::size_t i = 0; i < groups.size(); ++i) panel.series.push_back(to_series(groups[i], i));
  return panel;
}

}  // namespace

Figure to_figure(const AccuracyReport& report) {
  Figure figure{.columns = 2, .legend = Legend::beside};
  for (const DrawnQuantity& quantity : quantities) {
    Panel panel = to_panel(quantity, report.cases);
    if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  }
  return figure;
}

}  // namespace foretrain

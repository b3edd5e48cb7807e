#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/base/format.hpp"
#include "reports/figure/bandwidth.hpp"
#include "reports/print/names.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

Axis size_axis(const BandwidthFigure& bandwidth, bool shown) {
  Axis axis{.logarithmic = true, .unit = "B", .grid = true};
  axis.low = bandwidth.sizes.front().value() / 1.3;
  axis.high = bandwidth.sizes.back().value() * 1.3;
  if (shown) {
    axis.name = "message";
    return axis;
  }
  for (Tic& tic : axis.tics = logarithmic_tics(axis.low, axis.high)) tic.label.clear();
  return axis;
}

/// Measured points first, so that the curves lie over them.
void add_series(Panel& plot, const BandwidthPanel& panel, double (*value)(const BandwidthPoint&)) {
  constexpr std::size_t measured_colour = 4;
  if (!panel.measured.empty()) {
    Series& measured = plot.series.emplace_back(Series{.name = "measured", .colour = palette[measured_colour]});
    measured.dot = Dot::circle;
    measured.dot_size = 0.5;
    for (const BandwidthPoint& point : panel.measured) measured.points.push_back({point.size.value(), value(point)});
  }
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const std::size_t colour = i % (palette.size() - 1);
    Series& curve = plot.series.emplace_back(Series{.name = spoken(panel.curves[i].name) + ", predicted", .line = 2.2});
    curve.colour = palette[colour < measured_colour ? colour : colour + 1];
    for (const auto& point : panel.curves[i].points) {
      curve.points.push_back(point ? Point{point->size.value(), value(*point)}
                                   : Point{0.0, std::numeric_limits<double>::quiet_NaN()});
      if (!point || !(point->high > Seconds(0))) continue;
      const double one = value(point->in(point->low)), other = value(point->in(point->high));
      curve.ranges.resize(curve.points.size());
      curve.ranges.back() = {std::min(one, other), std::max(one, other)};
    }
  }
}

}  // namespace

std::string to_text(const BandwidthFigure& bandwidth) {
  std::string text;
  for (const BandwidthPanel& panel : bandwidth.panels) {
    std::vector<std::string> header = {"message"};
    for (const BandwidthCurve& curve : panel.curves) {
      header.push_back(curve.name);
      header.emplace_back("bus");
    }
    TextTable table(std::string(header.size(), 'r'), header);
    for (std::size_t i = 0; i < bandwidth.sizes.size(); ++i) {
      std::vector<std::string> row = {format_bytes(bandwidth.sizes[i])};
      for (const BandwidthCurve& curve : panel.curves) {
        const auto& point = curve.points[i];
        row.push_back(point ? format_seconds(point->time) : "-");
        row.push_back(point ? format_bandwidth(point->bus_bandwidth) : "-");
      }
      table.add_row(row);
    }
    text += fmt::format("{}{}: {}\n\n{}", text.empty() ? "" : "\n", panel.title, panel.subtitle, table.text(2));
  }
  return text;
}

Figure to_figure(const BandwidthFigure& bandwidth) {
  Figure figure{.columns = bandwidth.panels.size(), .legend = Legend::shared};
  for (const BandwidthPanel& panel : bandwidth.panels) {
    Panel& plot = figure.panels.emplace_back(Panel{.title = panel.title, .subtitle = panel.subtitle});
    plot.x = size_axis(bandwidth, false);
    plot.y = {.name = figure.panels.size() == 1 ? "bus bandwidth (GB/s)" : "", .grid = true};
    add_series(plot, panel, [](const BandwidthPoint& point) { return point.bus_bandwidth.value() / 1e9; });
  }
  for (const BandwidthPanel& panel : bandwidth.panels) {
    Panel& plot = figure.panels.emplace_back();
    plot.x = size_axis(bandwidth, true);
    plot.y = {.logarithmic = true, .unit = "s", .grid = true};
    if (&panel == &bandwidth.panels.front()) plot.y.name = "time";
    add_series(plot, panel, [](const BandwidthPoint& point) { return point.time.value(); });
  }
  for (Panel& plot : figure.panels) plot.width = 300, plot.height = 210;
  return figure;
}

}  // namespace foretrain

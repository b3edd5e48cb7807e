#include "reports/figure/plot_bandwidth.hpp"

#include <fmt/format.h>

#include "model/base/format.hpp"

namespace foretrain {

namespace {

Axis size_axis(const std::vector<double>& sizes, bool shown) {
  Axis axis{.logarithmic = true, .unit = "B", .grid = true};
  axis.low = sizes.front() / 1.3;
  axis.high = sizes.back() * 1.3;
  if (shown) {
    axis.name = "message";
    return axis;
  }
  for (Tic& tic : axis.tics = logarithmic_tics(axis.low, axis.high)) tic.label.clear();
  return axis;
}

/// Measured points first, so that the curves lie over them.
Panel panel_of(const CurveChart& chart, const std::vector<Point>& measured, bool lowest) {
  constexpr std::size_t measured_colour = 4;
  Panel panel = to_panel(chart, 300, 210);
  panel.x = size_axis(chart.places, lowest);
  std::size_t colour = 0;
  for (Series& curve : panel.series) {
    curve.name += ", predicted";
    curve.at_end = false;
    curve.dot = Dot::none;
    if (colour == measured_colour) ++colour;
    curve.colour = palette[colour++ % palette.size()];
  }
  if (measured.empty()) return panel;
  Series dots{.name = "measured", .colour = palette[measured_colour], .points = measured, .dot = Dot::circle};
  for (Point& point : dots.points) point.y /= chart.scale.unit;
  panel.series.insert(panel.series.begin(), std::move(dots));
  return panel;
}

}  // namespace

BandwidthChart empty_bandwidths(const std::string& title, const std::string& subtitle,
                                const std::vector<double>& sizes) {
  BandwidthChart chart;
  chart.times = {.title = title, .subtitle = subtitle, .axis = "message", .places = sizes};
  for (const double size : sizes) chart.times.labels.push_back(format_bytes(Bytes(size)));
  chart.bandwidths = chart.times;
  chart.times.scale = {"time", 1.0, [](double time) { return format_seconds(Seconds(time)); }};
  chart.bandwidths.scale = {"bus bandwidth (GB/s)", 1e9,
                            [](double rate) { return format_bandwidth(BytesPerSecond(rate)); }};
  return chart;
}

std::string to_text(const std::vector<BandwidthChart>& charts) {
  std::string text;
  for (const BandwidthChart& chart : charts) {
    const auto times = cells_of(chart.times, "message"), rates = cells_of(chart.bandwidths, "message");
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < times.size(); ++i) {
      rows.push_back({times[i].front()});
      for (std::size_t c = 1; c < times[i].size(); ++c) {
        rows.back().insert(rows.back().end(), {times[i][c], i == 0 ? "bus" : rates[i][c]});
      }
    }
    text += fmt::format("{}{}: {}\n\n{}", text.empty() ? "" : "\n", chart.times.title, chart.times.subtitle,
                        table_text(rows));
  }
  return text;
}

Figure to_figure(const std::vector<BandwidthChart>& charts) {
  Figure figure{.columns = charts.size(), .legend = Legend::shared};
  for (const BandwidthChart& chart : charts) {
    figure.panels.push_back(panel_of(chart.bandwidths, chart.measured_bandwidths, false));
    Panel& panel = figure.panels.back();
    panel.y = {.name = figure.panels.size() == 1 ? panel.y.name : "", .grid = true};
  }
  for (const BandwidthChart& chart : charts) {
    figure.panels.push_back(panel_of(chart.times, chart.measured_times, true));
    Panel& panel = figure.panels.back();
    panel.title = panel.subtitle = "";
    panel.y = {.name = &chart == charts.data() ? "time" : "", .logarithmic = true, .unit = "s", .grid = true};
  }
  return figure;
}

}  // namespace foretrain

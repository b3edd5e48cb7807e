#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "model/base/format.hpp"
#include "reports/axis.hpp"
#include "reports/bandwidth.hpp"
#include "reports/gnuplot.hpp"
#include "reports/table.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int plot_width = 300, plot_height = 210, left = 78, right = 26, top = 66, between = 30, bottom = 62,
              key_line = 20;
constexpr std::string_view measured_colour = "#E69F00";
/// Not the colour of measured points.
constexpr std::array<std::string_view, 6> curve_colours = {palette[0], palette[1], palette[2],
                                                           palette[3], palette[5], palette[6]};

int panel_width(const BandwidthPanel& panel) {
  return left + std::max({plot_width, text_width(panel.title, 15), text_width(panel.subtitle, 12)}) + right;
}

/// Size in bytes, time in microseconds, bandwidth in GB/s.
std::string point_line(const BandwidthPoint& point) {
  return fmt::format("{:.9g} {:.9g} {:.9g}\n", point.size.value(), point.time.value() * 1e6,
                     point.bus_bandwidth.value() / 1e9);
}

std::string panel_data(const BandwidthPanel& panel, std::size_t number) {
  std::string data;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    data += fmt::format("$curve{}_{} << END\n", number, i);
    for (const auto& point : panel.curves[i].points) data += point ? point_line(*point) : "\n";
    data += "END\n";
  }
  if (panel.measured.empty()) return data;
  data += fmt::format("$measured{} << END\n", number);
  for (const BandwidthPoint& point : panel.measured) data += point_line(point);
  return data + "END\n";
}

/// Measured points first, so that the curves lie over them.
std::string plot_command(const BandwidthPanel& panel, std::size_t number, int column) {
  std::string plots;
  const auto add = [&](const std::string& plot) { plots += (plots.empty() ? "plot " : ", ") + plot; };
  if (!panel.measured.empty()) {
    add(fmt::format("$measured{} using 1:{} with points pointtype 7 pointsize 0.45 linecolor rgb '{}'", number, column,
                    measured_colour));
  }
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    add(fmt::format("$curve{}_{} using 1:{} with lines linewidth 2.2 linecolor rgb '{}'", number, i, column,
                    curve_colours[i % curve_colours.size()]));
  }
  return plots + "\n";
}

/// Decades from one kilobyte to a hundred gigabytes.
std::string size_tics(bool shown) {
  static constexpr std::array<const char*, 12> names = {"1 B", "", "", "1 KB", "", "", "1 MB", "", "", "1 GB", "", ""};
  std::string tics;
  for (std::size_t i = 0; i < names.size(); ++i) {
    tics += fmt::format("{}'{}' 1e{}", tics.empty() ? "" : ", ", shown ? names[i] : "", i);
  }
  return "set xtics (" + tics + ")\n";
}

/// The largest bandwidth of a panel, in GB/s, curves and measurements together.
double highest(const BandwidthPanel& panel) {
  double result = 0.0;
  const auto take = [&](const BandwidthPoint& point) { result = std::max(result, point.bus_bandwidth.value() / 1e9); };
  for (const BandwidthCurve& curve : panel.curves) {
    for (const auto& point : curve.points) {
      if (point) take(*point);
    }
  }
  for (const BandwidthPoint& point : panel.measured) take(point);
  if (!(result > 0.0)) throw std::invalid_argument("there is no bandwidth to draw: " + panel.title);
  return result;
}

/// What the colours stand for, one line for all panels.
std::string key_script(const BandwidthFigure& figure, int width, int height) {
  std::string script;
  int x = left;
  int number = 50;
  const auto entry = [&](const std::string& text, std::string_view colour, int point_type) {
    script += fmt::format(
        "set label {} {} at screen {:.5f},{:.5f} left point pointtype {} pointsize 0.7 linecolor rgb '{}' offset "
        "1,-0.25 "
        "font ',12'\n",
        number++, gnuplot_string(text), static_cast<double>(x) / width, 1.0 - 14.0 / height, point_type, colour);
    x += text_width(text, 12) + 34;
  };
  std::vector<std::string> names;
  bool measured = false;
  for (const BandwidthPanel& panel : figure.panels) {
    measured = measured || !panel.measured.empty();
    for (std::size_t i = 0; i < panel.curves.size(); ++i) {
      if (std::find(names.begin(), names.end(), panel.curves[i].name) != names.end()) continue;
      names.push_back(panel.curves[i].name);
      entry(panel.curves[i].name + ", predicted", curve_colours[i % curve_colours.size()], 5);
    }
  }
  if (measured) entry("measured", measured_colour, 7);
  return script;
}

}  // namespace

std::string to_text(const BandwidthFigure& figure) {
  std::string text;
  for (const BandwidthPanel& panel : figure.panels) {
    TextTable table(std::vector<Align>(1 + 2 * panel.curves.size(), Align::right));
    std::vector<std::string> header = {"message"};
    for (const BandwidthCurve& curve : panel.curves) {
      header.push_back(curve.name);
      header.emplace_back("bus");
    }
    table.add_row(header);
    table.add_rule();
    for (std::size_t i = 0; i < figure.sizes.size(); ++i) {
      std::vector<std::string> row = {format_bytes(figure.sizes[i])};
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

std::string to_svg(const BandwidthFigure& figure) {
  int width = 0;
  for (const BandwidthPanel& panel : figure.panels) width += panel_width(panel);
  const int first = top + key_line;
  const int height = first + 2 * plot_height + between + bottom;
  std::string script = gnuplot_preamble(width, height) +
                       "set multiplot\nset logscale x\nset grid xtics ytics linecolor rgb '#ececec' linetype 1\n" +
                       fmt::format("set xrange [{:.6g}:{:.6g}]\n", figure.sizes.front().value() / 1.3,
                                   figure.sizes.back().value() * 1.3) +
                       key_script(figure, width, height);
  int start = 0;
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const BandwidthPanel& panel = figure.panels[i];
    const int x = start + left;
    script += panel_data(panel, i);
    script += gnuplot_margins(width, height, x, x + plot_width, first, first + plot_height);
    script += fmt::format("set label 1 {} at graph 0,1 offset 0,2.0 left font ',15'\n", gnuplot_string(panel.title));
    script += fmt::format("set label 2 {} at graph 0,1 offset 0,0.8 left textcolor rgb '#666666' font ',12'\n",
                          gnuplot_string(panel.subtitle));
    script += fmt::format("unset logscale y\nset ytics autofreq\nset format y '%g'\nset yrange [0:{:.6g}]\n",
                          highest(panel) * 1.08);
    script += size_tics(false) + fmt::format("set xlabel ''\nset ylabel '{}'\n", i == 0 ? "bus bandwidth (GB/s)" : "");
    script += plot_command(panel, i, 3) + "unset label\n";
    script += gnuplot_margins(width, height, x, x + plot_width, first + plot_height + between,
                              first + 2 * plot_height + between);
    script +=
        "set logscale y\nset ytics (\"1 µs\" 1, \"10 µs\" 10, \"100 µs\" 100, \"1 ms\" 1e3, \"10 ms\" 1e4, \"100 "
        "ms\" 1e5, \"1 s\" 1e6, \"10 s\" 1e7, \"100 s\" 1e8)\nset yrange [*:*]\n";
    script += size_tics(true) + fmt::format("set xlabel 'message'\nset ylabel '{}'\n", i == 0 ? "time" : "");
    script += plot_command(panel, i, 2);
    start += panel_width(panel);
  }
  return run_gnuplot(script + "unset multiplot\n");
}

}  // namespace foretrain

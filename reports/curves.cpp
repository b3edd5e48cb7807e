#include "reports/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "reports/axis.hpp"
#include "reports/gnuplot.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int panel_width = 560, panel_height = 400;
constexpr int left = 80, right = 24, top = 62, bottom = 60;
constexpr int legend_line = 17;
constexpr std::size_t panels_per_row = 2;

struct Range {
  double low = 1e300, high = 0.0;
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

bool has_points(const CurvePanel& panel) {
  return std::any_of(panel.curves.begin(), panel.curves.end(),
                     [](const Curve& curve) { return !curve.points.empty(); });
}

int legend_height(const CurvePanel& panel) { return legend_line * static_cast<int>((panel.curves.size() + 1) / 2); }

std::string size_tics(const Range& range) {
  const double steps = std::log2(range.high / range.low);
  const double factor = std::exp2(std::max(1.0, std::ceil(steps / 7.0)));
  std::string tics;
  for (double size = std::exp2(std::ceil(std::log2(range.low))); size <= range.high; size *= factor) {
    tics += fmt::format("{}'{}' {:.0f}", tics.empty() ? "" : ", ", format_binary_bytes(Bytes(size)), size);
  }
  return "(" + tics + ")";
}

std::string style(std::size_t i) {
  return fmt::format("pointtype 7 pointsize 0.45 linecolor rgb '{}'", palette[i % palette.size()]);
}

/// Names of the curves in two columns under the panel's title.
std::string legend(const CurvePanel& panel, int x, int y, int width, int height) {
  std::string script;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const int column = static_cast<int>(i % 2) * (panel_width - left - right) / 2;
    const int row = static_cast<int>(i / 2) * legend_line;
    script += fmt::format("set label {} at screen {:.5f},{:.5f} left point {} offset 1,-0.25 font ',12'\n",
                          gnuplot_string(panel.curves[i].name), static_cast<double>(x + left + column + 8) / width,
                          1.0 - static_cast<double>(y + 44 + row) / height, style(i));
  }
  return script;
}

std::string panel_script(const CurvePanel& panel, std::size_t number, int x, int y, int width, int height) {
  Range across, up;
  std::string data, plots;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const Curve& curve = panel.curves[i];
    const std::string name = fmt::format("$p{}c{}", number, i);
    data += name + " << END\n";
    for (const auto& [a, b] : curve.points) {
      across.take(a);
      up.take(b);
      data += fmt::format("{:.9g} {:.9g}\n", a, b);
    }
    data += "END\n";
    if (curve.points.empty()) continue;
    plots += fmt::format("{}{} using 1:2 with {} {}", plots.empty() ? "plot " : ", ", name,
                         curve.line ? "linespoints linewidth 1.5" : "points", style(i));
  }
  if (panel.line_at > 0.0) up.take(panel.line_at);
  const Range wide{across.low / 1.3, across.high * 1.3};
  const int legend_room = legend_height(panel);
  std::string script = gnuplot_margins(width, height, x + left, x + panel_width - right, y + top + legend_room,
                                       y + panel_height + legend_room - bottom);
  script += fmt::format("set label {} at screen {:.5f},{:.5f} left font ',15'\n", gnuplot_string(panel.title),
                        static_cast<double>(x + left) / width, 1.0 - static_cast<double>(y + 20) / height);
  script += legend(panel, x, y, width, height);
  script += fmt::format("set xlabel {}\nset ylabel {}\nset logscale x\nset xrange [{:.6g}:{:.6g}]\n",
                        gnuplot_string(panel.x), gnuplot_string(panel.y), wide.low, wide.high);
  script +=
      fmt::format("set xtics {}\n", panel.binary_sizes ? size_tics(wide) : logarithmic_tics(wide.low, wide.high, true));
  if (panel.linear_y) {
    script += fmt::format("unset logscale y\nset yrange [0:{:.6g}]\nset ytics autofreq\n", up.high * 1.08);
  } else {
    const Range tall{up.low / 1.4, up.high * 1.4};
    script += fmt::format("set logscale y\nset yrange [{:.6g}:{:.6g}]\nset ytics {}\n", tall.low, tall.high,
                          logarithmic_tics(tall.low, tall.high, tall.high / tall.low > 2000.0));
  }
  if (panel.line_at > 0.0) {
    plots += fmt::format(", {:.9g} with lines linecolor rgb '#9a9a9a' dashtype 2", panel.line_at);
    script +=
        fmt::format("set label {} at graph 0.01,first {:.9g} left offset 0,0.6 textcolor rgb '#666666' font ',12'\n",
                    gnuplot_string(panel.line_name), panel.line_at);
  }
  return data + script + plots + "\nunset label\n";
}

}  // namespace

std::string to_svg(const CurveFigure& figure) {
  std::vector<const CurvePanel*> panels;
  for (const CurvePanel& panel : figure.panels) {
    if (has_points(panel)) panels.push_back(&panel);
  }
  if (panels.empty()) throw UsageError("nothing of this kind was measured: there is nothing to draw");
  std::vector<int> row_tops = {0};
  for (std::size_t i = 0; i < panels.size(); i += panels_per_row) {
    int tallest = 0;
    for (std::size_t j = i; j < std::min(panels.size(), i + panels_per_row); ++j) {
      tallest = std::max(tallest, panel_height + legend_height(*panels[j]));
    }
    row_tops.push_back(row_tops.back() + tallest);
  }
  const int width = panel_width * static_cast<int>(std::min(panels.size(), panels_per_row));
  const int height = row_tops.back();
  std::string script = gnuplot_preamble(width, height) + "set multiplot\nset format xy '%g'\n";
  for (std::size_t i = 0; i < panels.size(); ++i) {
    script += panel_script(*panels[i], i, static_cast<int>(i % panels_per_row) * panel_width,
                           row_tops[i / panels_per_row], width, height);
  }
  return run_gnuplot(script + "unset multiplot\n");
}

}  // namespace foretrain

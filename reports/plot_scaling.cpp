#include "reports/plot_scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "model/base/format.hpp"
#include "reports/axis.hpp"
#include "reports/gnuplot.hpp"
#include "reports/table.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int plot_width = 290, figure_height = 410;
constexpr int left = 80, right = 28, top = 74, bottom = 66;
constexpr double label_gap = 19.0;

/// The range of a panel's times.
struct Range {
  Seconds low = Seconds::infinity();
  Seconds high;
  [[nodiscard]] bool logarithmic() const { return high / low > widest_linear_ratio; }
};

Range range_of(const ScalingPanel& panel) {
  Range range;
  for (const ScalingCurve& curve : panel.curves) {
    for (const auto& time : curve.times) {
      if (!time) continue;
      range.low = std::min(range.low, *time);
      range.high = std::max(range.high, *time);
    }
  }
  if (!(range.high > Seconds(0))) throw std::invalid_argument("there is no step time to draw: " + panel.title);
  return range;
}

struct YAxis {
  TimeUnit unit;
  double low, high;  // in the unit
  bool logarithmic;

  /// 0 at the bottom of the panel, 1 at its top.
  [[nodiscard]] double place(Seconds time) const {
    const double value = time / unit.size;
    return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  }
};

YAxis y_axis(const Range& range) {
  const TimeUnit unit = time_unit(range.high);
  if (!range.logarithmic()) return {unit, 0.0, range.high / unit.size * 1.06, false};
  return {unit, range.low / unit.size / 1.4, range.high / unit.size * 1.25, true};
}

/// A curve's name and last time, for its right end.
struct EndLabel {
  std::string text;
  Seconds time;
  std::size_t curve = 0;
};
std::vector<EndLabel> end_labels(const ScalingPanel& panel) {
  std::vector<EndLabel> labels;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    const ScalingCurve& curve = panel.curves[i];
    const auto last =
        std::find_if(curve.times.rbegin(), curve.times.rend(), [](const auto& t) { return t.has_value(); });
    if (last == curve.times.rend()) continue;
    labels.push_back({fmt::format("{}  {}", curve.name, format_seconds(**last)), **last, i});
  }
  return labels;
}

/// The labels beside the right ends of their curves, none over another.
std::string end_label_script(const std::vector<EndLabel>& labels, const YAxis& axis) {
  std::vector<double> places;
  for (const EndLabel& label : labels) places.push_back(axis.place(label.time));
  places = spread(places, label_gap / (figure_height - top - bottom), 0.0, 1.0);
  std::string script;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    script += fmt::format("set label {} {} at graph 1.03,{:.5f} left textcolor rgb '{}'\n", i + 1,
                          gnuplot_string(labels[i].text), places[i], palette[labels[i].curve % palette.size()]);
  }
  return script;
}

/// Everything a panel takes: axis, plot area, end labels.
int panel_width(const ScalingPanel& panel) {
  int widest = text_width(panel.title) - plot_width;
  for (const EndLabel& label : end_labels(panel)) widest = std::max(widest, text_width(label.text));
  return left + plot_width + std::max(widest, 0) + right;
}

/// A logarithmic axis has tics at 1, 2 and 5 times the powers of ten.
std::string y_tics(const YAxis& axis) {
  if (!axis.logarithmic) return "unset logscale y\nset ytics autofreq\n";
  return "set logscale y\nset ytics " + logarithmic_tics(axis.low, axis.high) + "\n";
}

std::string curve_data(const ScalingFigure& figure, const ScalingCurve& curve, const TimeUnit& unit,
                       std::size_t number) {
  std::string data = fmt::format("$curve{} << END\n", number);
  for (std::size_t i = 0; i < figure.gpus.size(); ++i) {
    data += curve.times[i] ? fmt::format("{} {:.9g}\n", figure.gpus[i], *curve.times[i] / unit.size) : "\n";
  }
  return data + "END\n";
}

std::string x_axis(const std::vector<int>& gpus) {
  std::string tics;
  for (const int n : gpus) tics += fmt::format("{}'{}' {}", tics.empty() ? "" : ", ", n, n);
  return fmt::format("set logscale x 2\nset xrange [{}:{}]\nset xtics ({})\nset xlabel 'GPUs'\n", gpus.front() * 0.92,
                     gpus.back() * 1.08, tics);
}

std::string panel_script(const ScalingFigure& figure, const ScalingPanel& panel, int start, int width) {
  const YAxis axis = y_axis(range_of(panel));
  std::string script =
      gnuplot_margins(width, figure_height, start + left, start + left + plot_width, top, figure_height - bottom);
  script += fmt::format("set label 90 {} at graph 0,1 offset 0,2.3 left font ',15'\n", gnuplot_string(panel.title));
  script += fmt::format("set label 91 {} at graph 0,1 offset 0,0.9 left textcolor rgb '#666666' font ',12'\n",
                        gnuplot_string(panel.subtitle));
  script += fmt::format("set ylabel 'time of one step ({})'\n{}set yrange [{:.6g}:{:.6g}]\n", axis.unit.name,
                        y_tics(axis), axis.low, axis.high);
  script += end_label_script(end_labels(panel), axis);
  std::string plots;
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    script += curve_data(figure, panel.curves[i], axis.unit, i);
    plots +=
        fmt::format("{}$curve{} using 1:2 with linespoints linewidth 2.5 pointtype 7 pointsize 0.6 linecolor rgb '{}'",
                    plots.empty() ? "plot " : ", ", i, palette[i % palette.size()]);
  }
  return script + plots + "\nunset label\n";
}

}  // namespace

std::string to_text(const ScalingFigure& figure) {
  std::string text;
  for (const ScalingPanel& panel : figure.panels) {
    std::vector<Align> columns(panel.curves.size() + 2, Align::right);
    TextTable table(columns);
    std::vector<std::string> header = {"GPUs"};
    for (const ScalingCurve& curve : panel.curves) header.push_back(curve.name);
    header.emplace_back("slowest / fastest");
    table.add_row(header);
    table.add_rule();
    for (std::size_t i = 0; i < figure.gpus.size(); ++i) {
      std::vector<std::string> row = {std::to_string(figure.gpus[i])};
      Seconds fastest = Seconds::infinity();
      Seconds slowest;
      for (const ScalingCurve& curve : panel.curves) {
        const auto& time = curve.times[i];
        row.push_back(time ? format_seconds(*time) : "-");
        fastest = time ? std::min(fastest, *time) : fastest;
        slowest = time ? std::max(slowest, *time) : slowest;
      }
      row.push_back(slowest > Seconds(0) ? fmt::format("{:.2f}", slowest / fastest) : "-");
      table.add_row(row);
    }
    text += fmt::format("{}{}: time of one step, {}\n\n{}", text.empty() ? "" : "\n", panel.title, panel.subtitle,
                        table.text(2));
  }
  return text;
}

std::string to_svg(const ScalingFigure& figure) {
  int width = 0;
  for (const ScalingPanel& panel : figure.panels) width += panel_width(panel);
  std::string script = gnuplot_preamble(width, figure_height) + "set multiplot\n" + x_axis(figure.gpus);
  int start = 0;
  for (const ScalingPanel& panel : figure.panels) {
    script += panel_script(figure, panel, start, width);
    start += panel_width(panel);
  }
  return run_gnuplot(script + "unset multiplot\n");
}

}  // namespace foretrain

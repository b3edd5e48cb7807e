#include "reports/plot_sweep.hpp"

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
constexpr int plot_width = 520, figure_height = 430;
constexpr int left = 80, right = 28, top = 62, bottom = 66;
constexpr double label_gap = 19.0;
constexpr double label_space = 10.0;

/// Where a curve is lowest; nothing where it has no point.
std::optional<std::size_t> best_of(const SweepCurve& curve) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < curve.times.size(); ++i) {
    if (curve.times[i] && (!best || *curve.times[i] < *curve.times[*best])) best = i;
  }
  return best;
}

struct YAxis {
  TimeUnit unit{"s", Seconds(1.0)};
  double low = 0.0, high = 1.0;  // in the unit
  bool logarithmic = false;

  [[nodiscard]] bool shows(Seconds time) const { return !logarithmic || time / unit.size >= low; }
  /// 0 at the bottom, 1 at the top.
  [[nodiscard]] double place(Seconds time) const {
    const double value = std::max(time / unit.size, low);
    return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  }
};

/// Chosen for whole steps; parts that are too small for a logarithmic axis leave it at its bottom.
YAxis y_axis(const SweepFigure& figure) {
  Seconds shortest = Seconds::infinity();
  Seconds longest;
  for (std::size_t c = 0; c < figure.curves.size(); ++c) {
    for (const auto& time : figure.curves[c].times) {
      if (!time) continue;
      longest = std::max(longest, *time);
      if (c < figure.steps) shortest = std::min(shortest, *time);
    }
  }
  if (!(longest > Seconds(0.0)) || !(shortest > Seconds(0.0))) {
    throw std::invalid_argument("there is no step time to draw: " + figure.title);
  }
  const TimeUnit unit = time_unit(longest);
  if (longest / shortest <= widest_linear_ratio) return {unit, 0.0, longest / unit.size * 1.06, false};
  const double room = figure.steps < figure.curves.size() ? 100.0 : 1.4;  // two decades for the parts below
  return {unit, shortest / unit.size / room, longest / unit.size * 1.4, true};
}

/// Labels stand under as many values as have room for theirs.
std::string x_axis(const SweepFigure& figure) {
  const double low = figure.values.front();
  const double high = figure.values.back();
  const bool logarithmic = low > 0.0 && high / low > widest_linear_ratio;
  const auto pixel = [&](double value) {
    if (!(high > low)) return 0.5 * plot_width;
    const double place = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return place * plot_width;
  };
  std::string tics;
  double free = -1e9;
  for (std::size_t i = 0; i < figure.values.size(); ++i) {
    const double half = 0.5 * text_width(figure.labels[i]);
    const double at = pixel(figure.values[i]);
    if (at - half < free) continue;
    free = at + half + label_space;
    tics += fmt::format("{}{} {:.9g}", tics.empty() ? "" : ", ", gnuplot_string(figure.labels[i]), figure.values[i]);
  }
  const double margin = high > low ? (high - low) * 0.02 : 0.5;
  const double stretch = logarithmic ? std::pow(high / low, 0.02) : 1.0;
  return fmt::format("{}set xrange [{:.9g}:{:.9g}]\nset xtics ({})\nset xlabel {}\n",
                     logarithmic ? "set logscale x\n" : "", logarithmic ? low / stretch : low - margin,
                     logarithmic ? high * stretch : high + margin, tics, gnuplot_string(figure.key));
}

/// Times may span decades: 1, 2 and 5 times the powers of ten, or the powers alone.
std::string y_tics(const YAxis& axis) {
  if (!axis.logarithmic) return "set ytics autofreq\n";
  return "set logscale y\nset ytics " + logarithmic_tics(axis.low, axis.high, axis.high / axis.low > 300.0) + "\n";
}

std::string color(std::size_t curve) { return std::string(palette[curve % palette.size()]); }

/// Names and last times at the right ends of the curves, none over another.
std::string end_labels(const SweepFigure& figure, const YAxis& axis, int& width) {
  std::vector<double> places;
  std::vector<std::string> texts;
  std::vector<std::size_t> curves;
  for (std::size_t c = 0; c < figure.curves.size(); ++c) {
    const auto& times = figure.curves[c].times;
    const auto last = std::find_if(times.rbegin(), times.rend(), [](const auto& time) { return time.has_value(); });
    if (last == times.rend()) continue;
    places.push_back(axis.place(**last));
    texts.push_back(fmt::format("{}  {}", figure.curves[c].name, format_seconds(**last)));
    curves.push_back(c);
    width = std::max(width, text_width(texts.back()));
  }
  places = spread(places, label_gap / (figure_height - top - bottom), 0.0, 1.0);
  std::string script;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    script += fmt::format("set label {} at graph 1.02,{:.5f} left textcolor rgb '{}'\n", gnuplot_string(texts[i]),
                          places[i], color(curves[i]));
  }
  return script;
}

}  // namespace

std::string to_text(const SweepFigure& figure) {
  TextTable table(std::vector<Align>(figure.curves.size() + 1, Align::right));
  std::vector<std::string> header = {figure.key};
  for (const SweepCurve& curve : figure.curves) header.push_back(curve.name);
  table.add_row(header);
  table.add_rule();
  for (std::size_t i = 0; i < figure.labels.size(); ++i) {
    std::vector<std::string> row = {figure.labels[i]};
    for (const SweepCurve& curve : figure.curves) {
      row.push_back(curve.times[i] ? format_seconds(*curve.times[i]) : "-");
    }
    table.add_row(row);
  }
  std::string text = fmt::format("{}\n\n{}\n", figure.title, table.text(2));
  for (std::size_t c = 0; c < figure.steps; ++c) {
    const SweepCurve& curve = figure.curves[c];
    const auto best = best_of(curve);
    if (!best) continue;
    text += fmt::format("  {} is shortest at {}: {}\n", curve.name, figure.labels[*best],
                        format_seconds(*curve.times[*best]));
  }
  return text;
}

std::string to_svg(const SweepFigure& figure) {
  const YAxis axis = y_axis(figure);
  int label_width = 0;
  std::string labels = end_labels(figure, axis, label_width);
  const int width = left + plot_width + std::max(label_width + 12, text_width(figure.title, 15) - plot_width) + right;
  std::string script = gnuplot_preamble(width, figure_height);
  script += gnuplot_margins(width, figure_height, left, left + plot_width, top, figure_height - bottom);
  script += fmt::format("set label {} at graph 0,1 offset 0,1.6 left font ',15'\n", gnuplot_string(figure.title));
  script += x_axis(figure) + fmt::format("set ylabel 'time ({})'\n", axis.unit.name) + y_tics(axis);
  script += fmt::format("set yrange [{:.6g}:{:.6g}]\n", axis.low, axis.high) + labels;
  std::string plots;
  std::string marks;
  for (std::size_t c = 0; c < figure.curves.size(); ++c) {
    const SweepCurve& curve = figure.curves[c];
    script += fmt::format("$curve{} << END\n", c);
    for (std::size_t i = 0; i < figure.values.size(); ++i) {
      const bool shown = curve.times[i] && axis.shows(*curve.times[i]);
      script += shown ? fmt::format("{:.9g} {:.9g}\n", figure.values[i], *curve.times[i] / axis.unit.size) : "\n";
    }
    script += "END\n";
    plots += fmt::format(
        "{}$curve{} using 1:2 with linespoints linewidth {} pointtype 7 pointsize 0.45 linecolor rgb '{}'{}",
        plots.empty() ? "plot " : ", ", c, c < figure.steps ? "2.5" : "1.5", color(c),
        c < figure.steps ? "" : " dashtype 2");
    const auto best = best_of(curve);
    if (c >= figure.steps || !best) continue;
    if (*best == 0 || *best + 1 == figure.values.size()) continue;  // at an end: better ones may lie beyond
    marks += fmt::format("{:.9g} {:.9g}\n", figure.values[*best], *curve.times[*best] / axis.unit.size);
    if (figure.steps > 1) continue;  // their labels would cover each other
    script += fmt::format("set label {} at first {:.9g},{:.9g} center offset 0,1 front font ',12' textcolor rgb '{}'\n",
                          gnuplot_string("best: " + figure.labels[*best]), figure.values[*best],
                          *curve.times[*best] / axis.unit.size, color(c));
  }
  if (!marks.empty()) {
    script += "$best << END\n" + marks + "END\n";
    plots += ", $best using 1:2 with points pointtype 6 pointsize 1.4 linewidth 2 linecolor rgb '#333333'";
  }
  return run_gnuplot(script + plots + "\n");
}

}  // namespace foretrain

#include "reports/plot_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/format.hpp"
#include "reports/axis.hpp"
#include "reports/gnuplot.hpp"
#include "reports/table.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int panel_width = 380, panel_height = 330, left = 94, top = 84, bottom = 62, right = 26;
constexpr double label_gap = 18.0;

std::string color(std::size_t curve) { return std::string(palette[curve % palette.size()]); }

/// A panel's values in its unit, one curve after another; absent ones end a line.
struct Panel {
  std::string title, axis;
  std::vector<std::vector<std::optional<double>>> curves;
  double low = 0.0, high = 0.0;
  std::optional<double> limit;  ///< a horizontal line, with its name
  std::string limit_name;
};

void set_range(Panel& panel) {
  panel.low = 1e300;
  for (const auto& curve : panel.curves) {
    for (const auto& value : curve) {
      if (!value) continue;
      panel.low = std::min(panel.low, *value / 1.4);
      panel.high = std::max(panel.high, *value * 1.4);
    }
  }
  if (panel.limit) panel.high = std::max(panel.high, *panel.limit * 1.6);
  if (panel.high <= 0.0) panel.low = 0.1, panel.high = 1.0;
}

Panel time_panel(const AttentionFigure& figure) {
  Panel panel{"Time", "time (ms)", {}, 0.0, 0.0, {}, ""};
  for (const AttentionCurve& curve : figure.curves) {
    panel.curves.emplace_back();
    for (const auto& time : curve.times) {
      panel.curves.back().push_back(time ? std::optional(time->value() * 1e3) : std::nullopt);
    }
  }
  set_range(panel);
  return panel;
}

Panel memory_panel(const AttentionFigure& figure) {
  Panel panel{"Memory at its peak", "memory (GB)", {}, 0.0, 0.0, figure.capacity.value() * 1e-9, ""};
  panel.limit_name = "the GPU has " + format_bytes(figure.capacity);
  for (const AttentionCurve& curve : figure.curves) {
    panel.curves.emplace_back();
    for (const Bytes memory : curve.memory) panel.curves.back().emplace_back(memory.value() * 1e-9);
  }
  set_range(panel);
  return panel;
}

std::string length_tics(const AttentionFigure& figure) {
  std::string tics;
  double free = -1e9;
  const double low = std::log2(static_cast<double>(figure.lengths.front()));
  const double span = std::max(std::log2(static_cast<double>(figure.lengths.back())) - low, 1e-9);
  for (const std::int64_t length : figure.lengths) {
    const std::string label = fmt::format("{}", length);
    const double at = (std::log2(static_cast<double>(length)) - low) / span * panel_width;
    const double half = 0.5 * text_width(label);
    if (at - half < free) continue;
    free = at + half + 8.0;
    tics += fmt::format("{}'{}' {}", tics.empty() ? "" : ", ", label, length);
  }
  return "set xtics (" + tics + ")\n";
}

/// Names at the right ends of the curves, none over another.
std::string end_labels(const AttentionFigure& figure, const Panel& panel, int& width) {
  std::vector<double> places;
  std::vector<std::size_t> curves;
  for (std::size_t c = 0; c < panel.curves.size(); ++c) {
    const auto& values = panel.curves[c];
    const auto last = std::find_if(values.rbegin(), values.rend(), [](const auto& value) { return value.has_value(); });
    if (last == values.rend()) continue;
    places.push_back(std::log(**last / panel.low) / std::log(panel.high / panel.low));
    curves.push_back(c);
    width = std::max(width, text_width(figure.curves[c].name));
  }
  // spread() keeps the order that it is given: from the bottom up.
  std::vector<std::size_t> order(places.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
  std::vector<double> sorted;
  for (const std::size_t i : order) sorted.push_back(places[i]);
  sorted = spread(sorted, label_gap / panel_height, 0.0, 1.0);
  std::string script;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t curve = curves[order[i]];
    script += fmt::format("set label {} at graph 1.02,{:.5f} left textcolor rgb '{}'\n",
                          gnuplot_string(figure.curves[curve].name), sorted[i], color(curve));
  }
  return script;
}

std::string panel_script(const AttentionFigure& figure, const Panel& panel, std::size_t number,
                         const std::string& labels) {
  std::string script =
      fmt::format("set label {} at graph 0,1 offset 0,0.8 left font ',14'\n", gnuplot_string(panel.title));
  script += fmt::format("set ylabel '{}'\nset yrange [{:.6g}:{:.6g}]\n", panel.axis, panel.low, panel.high);
  script += "set ytics " + logarithmic_tics(panel.low, panel.high, panel.high / panel.low > 300.0) + "\n" + labels;
  std::string plots;
  for (std::size_t c = 0; c < panel.curves.size(); ++c) {
    script += fmt::format("$curve{}_{} << END\n", number, c);
    for (std::size_t i = 0; i < figure.lengths.size(); ++i) {
      const auto& value = panel.curves[c][i];
      script += value ? fmt::format("{} {:.9g}\n", figure.lengths[i], *value) : "\n";
    }
    script += "END\n";
    plots += fmt::format(
        "{}$curve{}_{} using 1:2 with linespoints linewidth 2.2 pointtype 7 pointsize 0.4 linecolor rgb '{}'",
        plots.empty() ? "plot " : ", ", number, c, color(c));
  }
  if (panel.limit) {
    script +=
        fmt::format("set label {} at graph 0.02, first {:.6g} left offset 0,0.5 font ',12' textcolor rgb '#4D4D4D'\n",
                    gnuplot_string(panel.limit_name), *panel.limit);
    plots += fmt::format(", {:.6g} with lines dashtype 2 linewidth 1.5 linecolor rgb '#4D4D4D'", *panel.limit);
  }
  return script + plots + "\n";
}

std::string crossover_sentence(const AttentionFigure& figure, std::size_t curve) {
  const std::string& name = figure.curves[curve].name;
  const std::string& first = figure.curves.front().name;
  const auto length = crossover(figure, 0, curve);
  if (!length) return fmt::format("{} is not faster than {} at these lengths", name, first);
  if (*length == figure.lengths.front()) return fmt::format("{} is faster than {} at every length", name, first);
  return fmt::format("{} is faster than {} from {} on", name, first, *length);
}

}  // namespace

std::optional<std::int64_t> crossover(const AttentionFigure& figure, std::size_t first, std::size_t later) {
  std::optional<std::int64_t> result;
  for (std::size_t i = figure.lengths.size(); i-- > 0;) {
    const auto& slow = figure.curves[first].times[i];
    const auto& fast = figure.curves[later].times[i];
    if (!slow || !fast) continue;
    if (!(*fast < *slow)) break;
    result = figure.lengths[i];
  }
  return result;
}

std::string to_text(const AttentionFigure& figure) {
  std::string text = fmt::format("{}, {}\n", figure.title, figure.passes);
  for (const bool memory : {false, true}) {
    TextTable table(std::vector<Align>(figure.curves.size() + 1, Align::right));
    std::vector<std::string> header = {memory ? "memory" : "time"};
    for (const AttentionCurve& curve : figure.curves) header.push_back(curve.name);
    table.add_row(header);
    table.add_rule();
    for (std::size_t i = 0; i < figure.lengths.size(); ++i) {
      std::vector<std::string> row = {fmt::format("{}", figure.lengths[i])};
      for (const AttentionCurve& curve : figure.curves) {
        row.push_back(memory           ? format_bytes(curve.memory[i])
                      : curve.times[i] ? format_seconds(*curve.times[i])
                                       : "does not fit");
      }
      table.add_row(row);
    }
    text += "\n" + table.text(2) + "\n";
  }
  for (std::size_t c = 1; c < figure.curves.size(); ++c) text += "  " + crossover_sentence(figure, c) + "\n";
  return text;
}

std::string to_svg(const AttentionFigure& figure) {
  const Panel panels[] = {time_panel(figure), memory_panel(figure)};
  std::string labels[2];
  int label_width = 0;
  for (std::size_t p = 0; p < 2; ++p) labels[p] = end_labels(figure, panels[p], label_width);
  const int stride = left + panel_width + label_width + 16;
  const int width = 2 * stride + right, height = top + panel_height + bottom;
  std::string script = gnuplot_preamble(width, height);
  script += fmt::format("set multiplot\nset label 100 {} at screen {:.5f},{:.5f} left font ',16'\n",
                        gnuplot_string(figure.title + ", " + figure.passes), static_cast<double>(left) / width,
                        1.0 - 26.0 / height);
  script += fmt::format("set logscale xy\nset xrange [{}:{}]\nset xlabel 'sequence length (tokens)'\n",
                        figure.lengths.front(), figure.lengths.back()) +
            length_tics(figure);
  for (std::size_t p = 0; p < 2; ++p) {
    const int from = left + static_cast<int>(p) * stride;
    script += gnuplot_margins(width, height, from, from + panel_width, top, top + panel_height);
    script += panel_script(figure, panels[p], p, labels[p]) + "unset label\n";
  }
  return run_gnuplot(script + "unset multiplot\n");
}

}  // namespace foretrain

#include "reports/plot_breakdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "model/base/format.hpp"
#include "reports/axis.hpp"
#include "reports/gnuplot.hpp"
#include "reports/names.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int plot_width = 640, right = 100, top = 56, bottom = 66, bar_height = 46;

// Bars are drawn in time while the longest is at most this many times the shortest.
constexpr double widest_comparable_ratio = 12.0;
// A segment narrower than this share of the plot has no room for its percentage.
constexpr double narrowest_labelled = 0.06;

/// Colours of a part's piece of a bar and of what is written in it.
struct Paint {
  std::string_view color, text_color;
};
/// In the order of breakdown_parts.
constexpr std::array<Paint, breakdown_parts.size()> paints = {{{"#0072B2", "#ffffff"},
                                                               {"#D55E00", "#ffffff"},
                                                               {"#CC79A7", "#000000"},
                                                               {"#E69F00", "#000000"},
                                                               {"#56B4E9", "#000000"},
                                                               {"#009E73", "#ffffff"}}};

struct Scale {
  bool shares = false;
  TimeUnit unit{"s", Seconds(1.0)};
  double longest = 0.0;  ///< right end of the longest bar, in the axis' unit

  /// Position on the axis of a time within a bar.
  [[nodiscard]] double place(Seconds time, const Breakdown& whole) const {
    return shares ? time / whole.total() * 100.0 : time / unit.size;
  }
};

Scale scale_of(const std::vector<BreakdownBar>& bars) {
  const auto shorter = [](const BreakdownBar& a, const BreakdownBar& b) {
    return a.breakdown.total() < b.breakdown.total();
  };
  const auto [shortest, longest] = std::minmax_element(bars.begin(), bars.end(), shorter);
  const Seconds low = shortest->breakdown.total();
  const Seconds high = longest->breakdown.total();
  if (high > low * widest_comparable_ratio) return {true, {"s", Seconds(1.0)}, 100.0};
  const TimeUnit unit = time_unit(high);
  return {false, unit, high / unit.size};
}

/// The segments of one part in all bars, and their percentages.
std::string part_data(const std::vector<BreakdownBar>& bars, const Scale& scale, std::size_t number,
                      std::string& labels) {
  const Seconds Breakdown::*time = breakdown_parts.at(number).time;
  std::string data = fmt::format("$part{} << END\n", number);
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const Breakdown& b = bars[i].breakdown;
    Seconds before;
    for (std::size_t earlier = 0; earlier < number; ++earlier) before += b.*breakdown_parts.at(earlier).time;
    const double from = scale.place(before, b);
    const double to = scale.place(before + b.*time, b);
    const auto row = static_cast<double>(bars.size() - i);
    data += fmt::format("{:.9g} {} {:.9g} {:.9g} {} {}\n", from, row, from, to, row - 0.34, row + 0.34);
    if ((to - from) / scale.longest < narrowest_labelled) continue;
    labels += fmt::format("set label '{:.0f} %' at first {:.9g},{} center front textcolor rgb '{}' font ',12'\n",
                          b.*time / b.total() * 100.0, (from + to) / 2.0, row, paints.at(number).text_color);
  }
  return data + "END\n";
}

/// The parts that have a place in at least one bar.
std::vector<std::size_t> used_parts(const std::vector<BreakdownBar>& bars) {
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < breakdown_parts.size(); ++i) {
    const auto has_part = [&](const BreakdownBar& bar) {
      return bar.breakdown.*breakdown_parts.at(i).time > Seconds(0);
    };
    if (std::any_of(bars.begin(), bars.end(), has_part)) used.push_back(i);
  }
  return used;
}

/// One line above the bars: a square and a name per part.
std::string legend(const std::vector<std::size_t>& used, int left, int width, int height) {
  constexpr int square = 12, gap = 16, line = 24, font = 12;
  const auto entry_width = [&](std::size_t part) {
    return square + 6 + text_width(breakdown_parts.at(part).name, font) + gap;
  };
  int total = 0;
  for (const std::size_t part : used) total += entry_width(part);
  int x = std::max(8, std::min(left, width - total));
  const double y = 1.0 - static_cast<double>(line) / height;
  std::string script;
  for (const std::size_t part : used) {
    script += fmt::format(
        "set object rectangle center screen {:.5f},{:.5f} size screen {:.5f},{:.5f} fillcolor rgb '{}' fillstyle solid "
        "noborder\n",
        static_cast<double>(x + square / 2) / width, y, static_cast<double>(square) / width,
        static_cast<double>(square) / height, paints.at(part).color);
    script += fmt::format("set label '{}' at screen {:.5f},{:.5f} left font ',{}'\n", breakdown_parts.at(part).name,
                          static_cast<double>(x + square + 6) / width, y, font);
    x += entry_width(part);
  }
  return script;
}

std::string time_text(const BreakdownBar& bar) {
  return format_seconds(bar.breakdown.total()) + (bar.remark.empty() ? "" : " · " + bar.remark);
}

/// Names at the left of the bars, times at their right.
std::string bar_labels(const std::vector<BreakdownBar>& bars, const Scale& scale) {
  std::string tics;
  std::string script;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const std::size_t row = bars.size() - i;
    const Breakdown& b = bars[i].breakdown;
    tics += fmt::format("{}{} {}", tics.empty() ? "" : ", ", gnuplot_string(bars[i].label), row);
    script += fmt::format("set label {} at first {:.9g},{} left offset 0.8,0\n", gnuplot_string(time_text(bars[i])),
                          scale.place(b.total(), b), row);
  }
  return script + "set ytics (" + tics + ") scale 0\n";
}

}  // namespace

std::string breakdown_svg(const std::vector<BreakdownBar>& bars) {
  if (bars.empty()) throw std::invalid_argument("there is no step to draw");
  const Scale scale = scale_of(bars);
  const std::vector<std::size_t> used = used_parts(bars);
  int left = 0;
  int beside = right;
  for (const BreakdownBar& bar : bars) {
    left = std::max(left, 24 + text_width(bar.label));
    if (!bar.remark.empty()) beside = std::max(beside, 24 + text_width(time_text(bar)));
  }
  const int width = left + plot_width + beside;
  const int height = top + bottom + bar_height * static_cast<int>(bars.size());

  std::string script = gnuplot_preamble(width, height);
  script += gnuplot_margins(width, height, left, left + plot_width, top, height - bottom);
  script += fmt::format("set xrange [0:{:.9g}]\nset yrange [0.4:{}.6]\nset xlabel '{}'\n", scale.longest, bars.size(),
                        scale.shares ? "share of the step (%)" : fmt::format("time of one step ({})", scale.unit.name));
  script +=
      "unset grid\nset grid xtics linecolor rgb '#e4e4e4' linetype 1\nset border 1\nset style fill solid 1.0 "
      "noborder\n";
  script += legend(used, left, width, height) + bar_labels(bars, scale);
  std::string plots;
  for (const std::size_t part : used) {
    std::string labels;
    script += part_data(bars, scale, part, labels);
    script += labels;
    plots += fmt::format("{}$part{} using 1:2:3:4:5:6 with boxxyerror linecolor rgb '{}'",
                         plots.empty() ? "plot " : ", ", part, paints.at(part).color);
  }
  return run_gnuplot(script + plots + "\n");
}

}  // namespace foretrain

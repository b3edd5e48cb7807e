#include "reports/plot_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "reports/axis.hpp"
#include "reports/gnuplot.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int plot_width = 760, row_height = 30;
constexpr int right = 24, top = 62, bottom = 66;
constexpr int label_font = 11;
constexpr double narrow = 1.5;      // two such bars with as little between them are one
constexpr double bar_share = 0.37;  // of a row, on both sides of its middle

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> categories = {{{"compute", palette[0]},
                                                                                      {"communication", palette[1]},
                                                                                      {"host", palette[2]},
                                                                                      {"optimizer", palette[3]},
                                                                                      {"data", palette[4]}}};

struct Bar {
  std::size_t row = 0, category = 0;
  double begin = 0.0, end = 0.0;  // pixels from the left of the plot
  std::string name;               ///< empty where several are one
};

std::size_t category_of(const TimelineEntry& entry) {
  for (std::size_t i = 0; i < categories.size(); ++i) {
    if (categories[i].first == entry.category) return i;
  }
  return 0;
}

std::vector<std::string> rows_of(const std::vector<TimelineEntry>& entries) {
  std::vector<std::string> rows;
  for (const TimelineEntry& entry : entries) {
    if (std::find(rows.begin(), rows.end(), entry.resource) == rows.end()) rows.push_back(entry.resource);
  }
  std::stable_partition(rows.begin(), rows.end(), [](const std::string& row) { return row.starts_with("cpu"); });
  return rows;
}

/// Joins a bar to the one before it where neither can be seen apart.
void add_bar(std::vector<Bar>& bars, Bar bar) {
  if (!bars.empty()) {
    Bar& last = bars.back();
    const bool neighbours = last.row == bar.row && last.category == bar.category && bar.begin - last.end < narrow;
    if (neighbours && (bar.end - bar.begin < narrow || last.end - last.begin < narrow)) {
      last.end = std::max(last.end, bar.end);
      last.name.clear();
      return;
    }
  }
  bars.push_back(std::move(bar));
}

std::vector<Bar> bars_of(const TimelineFigure& figure, const std::vector<std::string>& rows, Seconds until) {
  std::vector<Bar> bars;
  const Seconds span = until - figure.from;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (const TimelineEntry& entry : figure.entries) {
      const Seconds end = entry.start + entry.duration;
      if (entry.resource != rows[row] || end <= figure.from || entry.start >= until) continue;
      const auto pixel = [&](Seconds date) { return std::clamp((date - figure.from) / span, 0.0, 1.0) * plot_width; };
      add_bar(bars, {row, category_of(entry), pixel(entry.start), pixel(end), entry.name});
    }
  }
  return bars;
}

/// Coloured names of the categories that occur, above the plot at the right.
std::string legend(const std::vector<Bar>& bars) {
  std::string script;
  double at = 1.0;
  for (std::size_t i = categories.size(); i-- > 0;) {
    if (std::none_of(bars.begin(), bars.end(), [&](const Bar& bar) { return bar.category == i; })) continue;
    script += fmt::format("set label {} at graph {:.5f},1 offset 0,0.8 right textcolor rgb '{}'\n",
                          gnuplot_string(categories[i].first), at, categories[i].second);
    at -= static_cast<double>(text_width(categories[i].first) + 14) / plot_width;
  }
  return script;
}

}  // namespace

std::string to_svg(const TimelineFigure& figure) {
  Seconds until;
  for (const TimelineEntry& entry : figure.entries) until = std::max(until, entry.start + entry.duration);
  until = std::min(until, figure.until);
  if (!(until > figure.from)) throw std::invalid_argument("nothing happens in this time: " + figure.title);
  const std::vector<std::string> rows = rows_of(figure.entries);
  const std::vector<Bar> bars = bars_of(figure, rows, until);

  int left = 60;
  for (const std::string& row : rows) left = std::max(left, text_width(row) + 24);
  const int width = left + plot_width + right;
  const int height = top + row_height * static_cast<int>(rows.size()) + bottom;
  const TimeUnit unit = time_unit(until);
  const auto date = [&](double pixels) {
    return (figure.from + (until - figure.from) * (pixels / plot_width)) / unit.size;
  };

  std::string script = gnuplot_preamble(width, height);
  script += gnuplot_margins(width, height, left, left + plot_width, top, height - bottom);
  script += fmt::format("set label {} at graph 0,1 offset 0,2.1 left font ',15'\n", gnuplot_string(figure.title));
  script += legend(bars);
  script += fmt::format("set xrange [{:.9g}:{:.9g}]\nset xlabel 'time ({})'\nset grid xtics noytics\n",
                        figure.from / unit.size, until / unit.size, unit.name);
  std::string tics;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    tics += fmt::format("{}{} {}", row == 0 ? "" : ", ", gnuplot_string(rows[row]), row);
  }
  script += fmt::format("set yrange [{}:-0.5]\nset ytics ({})\nset style fill solid 1 border rgb '#ffffff'\n",
                        static_cast<double>(rows.size()) - 0.5, tics);
  std::string plots;
  for (std::size_t category = 0; category < categories.size(); ++category) {
    std::string data;
    for (const Bar& bar : bars) {
      if (bar.category != category) continue;
      const auto row = static_cast<double>(bar.row);
      data += fmt::format("{:.9g} {} {:.9g} {:.9g} {} {}\n", date(bar.begin), bar.row, date(bar.begin), date(bar.end),
                          row - bar_share, row + bar_share);
      if (text_width(bar.name, label_font) + 6 > bar.end - bar.begin || bar.name.empty()) continue;
      script += fmt::format("set label {} at first {:.9g},{} center front font ',{}' textcolor rgb '#ffffff'\n",
                            gnuplot_string(bar.name), date(0.5 * (bar.begin + bar.end)), bar.row, label_font);
    }
    if (data.empty()) continue;
    script += fmt::format("$bars{} << END\n{}END\n", category, data);
    plots += fmt::format("{}$bars{} using 1:2:3:4:5:6 with boxxyerror linewidth 0.5 fillcolor rgb '{}'",
                         plots.empty() ? "plot " : ", ", category, categories[category].second);
  }
  return run_gnuplot(script + plots + "\n");
}

}  // namespace foretrain

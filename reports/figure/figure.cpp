// The one renderer: from a Figure to a script for gnuplot. Texts and margins are placed in pixels here, so that nothing
// is cut off; gnuplot draws axes, lines and boxes.
#include "reports/figure/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/error.hpp"
#include "reports/figure/layout.hpp"

namespace foretrain {

namespace {

constexpr std::string_view grey = "#666666", black = "#000000";
constexpr int label_line = 15;

std::string text_at(const std::string& place, std::string_view text, Pin pin, int font, std::string_view colour) {
  if (text.empty()) return {};
  static constexpr std::array<std::string_view, 3> words = {"left", "center", "right"};
  return fmt::format("set label {} at {} {} front font ',{}' textcolor rgb '{}'\n", gnuplot_string(text), place,
                     words[static_cast<std::size_t>(pin)], font, colour);
}

/// The text's lines, the middle of the first at this height.
std::string lines_at(const Canvas& canvas, double x, double y, const std::string& text, Pin pin, int font,
                     std::string_view colour, int step = small_line) {
  std::string script;
  for (const std::string& line : lines_of(text)) {
    script += text_at(canvas.at(x, y), line, pin, font, colour);
    y += step;
  }
  return script;
}

/// A piece of the series' line, its dot or a square of its area, the middle of the left end at this place.
std::string swatch_script(const Canvas& canvas, const Series& series, double x, double y) {
  if (swatch_of(series) == Swatch::line) {
    return fmt::format("set arrow from {} to {} nohead front linewidth {} linecolor rgb '{}'{}\n", canvas.at(x, y),
                       canvas.at(x + swatch_room(series) - 6, y), series.line, series.colour, dash_clause(series));
  }
  constexpr int square = 5;
  return fmt::format("set label '' at {} point pointtype {} pointsize 0.8 linecolor rgb '{}' front\n",
                     canvas.at(x + 5, y), swatch_of(series) == Swatch::dot ? point_type(series) : square,
                     series.colour);
}

std::string legend_script(const Canvas& canvas, const std::vector<Entry>& entries, int left, int top) {
  std::string script;
  for (const Entry& entry : entries) {
    const int x = left + entry.x, y = top + small_line * entry.line + small_line / 2;
    script += swatch_script(canvas, *entry.series, x, y);
    script += text_at(canvas.at(x + swatch_room(*entry.series), y), entry.series->name, Pin::left, small_font, black);
  }
  return script;
}

std::string axis_script(char direction, const Axis& axis) {
  std::string tics;
  for (const Tic& tic : axis.tics) {
    tics += fmt::format("{}{} {:.9g}", tics.empty() ? "" : ", ", gnuplot_string(tic.label), tic.at);
  }
  return fmt::format(
      "set {0}label {1} font ',{2}'\n{3} logscale {0}\nset {0}range [{4:.9g}:{5:.9g}]\nset {0}tics {6} font "
      "',{2}'\n{7}",
      direction, gnuplot_string(axis.name), axis.font, axis.logarithmic ? "set" : "unset", axis.low, axis.high,
      axis.tics.empty() ? "autofreq" : "(" + tics + ")", axis.grid ? fmt::format("set grid {}tics\n", direction) : "");
}

/// The texts at the right ends of lines, none over another.
std::string end_script(const Canvas& canvas, const Placed& placed) {
  const Panel& panel = placed.panel;
  std::vector<double> places;
  std::vector<const Series*> shown;
  for (const Series& series : panel.series) {
    const auto last = std::find_if(series.points.rbegin(), series.points.rend(),
                                   [](const Point& point) { return std::isfinite(point.y); });
    if (!series.at_end || last == series.points.rend()) continue;
    const bool below = panel.y.logarithmic && last->y <= panel.y.low;
    places.push_back(below ? 0.0 : std::clamp(panel.y.place(last->y), 0.0, 1.0) * panel.height);
    shown.push_back(&series);
  }
  places = spread(places, small_line, 0.0, panel.height);
  std::string script;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const int x = placed.x + panel.width + 10;
    const double y = placed.y + panel.height - places[i];
    if (end_room(*shown[i]) > 0) script += swatch_script(canvas, *shown[i], x, y);
    script +=
        text_at(canvas.at(x + end_room(*shown[i]), y), end_text(*shown[i]), Pin::left, small_font, shown[i]->colour);
  }
  return script;
}

std::string level_script(const Canvas& canvas, const Placed& placed) {
  std::string script;
  for (const Level& level : placed.panel.levels) {
    const Axis& axis = level.vertical ? placed.panel.x : placed.panel.y;
    if (level.at < axis.low || level.at > axis.high) continue;
    const double place = axis.place(level.at);
    script += level.vertical ? fmt::format("set arrow from first {0:.9g},graph 0 to first {0:.9g},graph 1", level.at)
                             : fmt::format("set arrow from graph 0,first {0:.9g} to graph 1,first {0:.9g}", level.at);
    script += fmt::format(" nohead front linewidth {} linecolor rgb '{}'{}\n", level.width, level.colour,
                          level.dashed ? " dashtype 2" : "");
    if (level.name.empty()) continue;
    const std::string beside = level.vertical
                                   ? canvas.at(placed.x + place * placed.panel.width + 5, placed.y + 9)
                                   : canvas.at(placed.x + 6, placed.y + (1.0 - place) * placed.panel.height - 9);
    script += text_at(beside, level.name, Pin::left, small_font, level.width > 1.0 ? level.colour : grey);
  }
  return script;
}

std::string panel_script(const Canvas& canvas, const Placed& placed, std::size_t number) {
  const Panel& panel = placed.panel;
  std::string script = fmt::format("set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\n",
                                   static_cast<double>(placed.x) / canvas.width,
                                   static_cast<double>(placed.x + panel.width) / canvas.width);
  script += fmt::format("set tmargin at screen {:.5f}\nset bmargin at screen {:.5f}\n",
                        1.0 - static_cast<double>(placed.y) / canvas.height,
                        1.0 - static_cast<double>(placed.y + panel.height) / canvas.height);
  script += panel.frame ? "set border 15 linecolor rgb '#bbbbbb'\n" : "set border 3 linecolor rgb '#4d4d4d'\n";
  script += "unset grid\n" + axis_script('x', panel.x) + axis_script('y', panel.y);
  if (panel.bare) script += "unset border\nunset xtics\nunset ytics\n";
  // From the plot area upwards: legend, subtitle, title.
  int y = placed.y - figure_gap / 2;
  if (canvas.legend == Legend::above) {
    const std::vector<Entry> entries = entries_of({&panel}, panel.width);
    y -= height_of(entries);
    script += legend_script(canvas, entries, placed.x, y);
  } else if (canvas.legend == Legend::beside) {
    script += legend_script(canvas, entries_of({&panel}, 0), placed.x + panel.width + figure_gap, placed.y);
  }
  const auto above = [&](const std::string& text, int font, int line, std::string_view colour) {
    if (text.empty()) return;
    y -= line * static_cast<int>(lines_of(text).size());
    const int middle = y + line / 2;
    script += lines_at(canvas, placed.x, middle, text, Pin::left, font, colour, line);
  };
  above(panel.subtitle, small_font, small_line, grey);
  above(panel.title, title_font, title_line, black);
  script += level_script(canvas, placed) + end_script(canvas, placed);
  for (const Label& label : panel.labels) {
    const auto lines = static_cast<int>(lines_of(label.text).size());
    const double middle = placed.y + (1.0 - panel.y.place(label.y)) * panel.height - label.up;
    script +=
        lines_at(canvas, placed.x + panel.x.place(label.x) * panel.width + label.right,
                 middle - (lines - 1) * label_line / 2.0, label.text, label.pin, label.font, label.colour, label_line);
  }
  const std::string edge = panel.edge.empty() ? "noborder" : fmt::format("border rgb '{}'", panel.edge);
  std::string data, plots;
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    const Series& series = panel.series[i];
    if (series.points.empty() && series.boxes.empty()) continue;
    const SeriesScript one = series_script(series, edge, fmt::format("$p{}s{}", number, i));
    data += one.data;
    plots += (plots.empty() ? "plot " : ", ") + one.clauses;
  }
  return script + data + plots + "\nunset label\nunset arrow\n";
}

}  // namespace

std::string to_svg(const Figure& figure) { return to_picture(figure, PictureFormat::svg); }

std::string to_picture(const Figure& figure, PictureFormat format) {
  if (figure.panels.empty()) throw UsageError("there is nothing to draw");
  const Canvas canvas = lay_out(figure);
  std::string script = "set encoding utf8\n" + terminal_script(format, canvas.width, canvas.height) +
                       R"(set multiplot
set tics nomirror out scale 0.6 textcolor rgb '#333333'
set grid linecolor rgb '#e4e4e4' linetype 1 linewidth 1
set format xy '%g'
unset key
)";
  if (canvas.legend == Legend::shared) {
    std::vector<const Panel*> all;
    for (const Placed& placed : canvas.panels) all.push_back(&placed.panel);
    script += legend_script(canvas, entries_of(all, canvas.legend_width), canvas.legend_left, canvas.legend_top);
  }
  script += text_at(canvas.at(canvas.panels.front().x, title_line - 5), canvas.title, Pin::left, title_font + 1, black);
  for (std::size_t i = 0; i < canvas.panels.size(); ++i) script += panel_script(canvas, canvas.panels[i], i);
  return run_gnuplot(script + "unset multiplot\n");
}

}  // namespace foretrain

// The one renderer: from a Figure to a script for gnuplot. Texts and margins are placed in pixels here, so that nothing
// is cut off; gnuplot draws axes, lines and boxes.
#include "reports/figure/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/error.hpp"
#include "reports/figure/series_style.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int title_font = 15, small_font = 12, title_line = 25, small_line = 18;
constexpr int least_left = 80, least_right = 28, gap = 14;
constexpr std::string_view grey = "#666666", black = "#000000";

int widest_label(const std::vector<Tic>& tics, int font) {
  int widest = 0;
  for (const Tic& tic : tics) widest = std::max(widest, text_width(tic.label, font));
  return widest;
}

/// What has room for no label and needs none.
bool is_blank(const Axis& axis) {
  return axis.name.empty() && !axis.tics.empty() && widest_label(axis.tics, axis.font) == 0;
}

/// Chooses what the panel leaves open: ranges, tics and colours.
void complete(Panel& panel) {
  std::vector<double> across, up;
  std::size_t colour = 0;
  for (Series& series : panel.series) {
    if (series.colour.empty()) series.colour = palette[colour++ % palette.size()];
    for (const Point& point : series.points) {
      if (!std::isfinite(point.y)) continue;
      across.push_back(point.x);
      up.push_back(point.y);
    }
    for (const Box& box : series.boxes) {
      across.insert(across.end(), {box.left, box.right});
      up.insert(up.end(), {box.low, box.high});
    }
  }
  if (across.empty()) throw UsageError("there is nothing to draw: " + panel.title);
  for (const Level& level : panel.levels) {
    if (!level.vertical) up.push_back(level.at);
  }
  set_range(panel.x, across, false);
  set_range(panel.y, up, true);
  drop_crowded(panel.x, panel.width);
}

// ---- legends

/// One name of a legend and where it begins, in pixels from the legend's corner.
struct Entry {
  const Series* series;
  int x = 0, line = 0;
};

constexpr int dot_room = 14, line_room = 34;

int swatch_room(const Series& series) { return swatch_of(series) == Swatch::line ? line_room : dot_room; }

/// Before the text at a line's end: nothing where the line is solid, and seen to end there.
int end_room(const Series& series) {
  const bool solid = swatch_of(series) == Swatch::line && dash_clause(series).empty();
  return solid ? 0 : swatch_room(series);
}

int entry_width(const Series& series) { return swatch_room(series) + text_width(series.name, small_font); }

/// The named series, one behind the other in lines of this width.
std::vector<Entry> entries_of(const std::vector<const Panel*>& panels, int width) {
  std::vector<Entry> entries;
  int x = 0, line = 0;
  for (const Panel* panel : panels) {
    for (const Series& series : panel->series) {
      const auto same = [&](const Entry& entry) { return entry.series->name == series.name; };
      if (series.name.empty() || std::any_of(entries.begin(), entries.end(), same)) continue;
      if (x > 0 && x + entry_width(series) > width) {
        x = 0;
        ++line;
      }
      entries.push_back({&series, x, line});
      x += entry_width(series) + gap;
    }
  }
  return entries;
}

int height_of(const std::vector<Entry>& entries) {
  return entries.empty() ? 0 : small_line * (entries.back().line + 1);
}

// ---- layout

struct Margins {
  int left = 0, right = 0, top = 0, bottom = 0;
  int title = 0;  ///< at the right as well, where another title stands beside this one
};

/// What a panel needs around its plot area; its legend too.
Margins margins_of(const Panel& panel, Legend legend) {
  Margins margins{24, least_right, gap, gap};
  if (!is_blank(panel.y)) {
    // gnuplot guesses generously how wide the labels are between an axis and its name.
    const int guessed_font = panel.y.name.empty() ? panel.y.font : 20;
    margins.left = std::max(least_left, 28 + widest_label(panel.y.tics, guessed_font));
  }
  const auto reserve = [&](double beyond) { margins.right = std::max(margins.right, static_cast<int>(beyond) + gap); };
  margins.title = text_width(panel.title, title_font) - panel.width + gap;
  reserve(text_width(panel.subtitle, small_font) - panel.width);
  for (const Series& series : panel.series) {
    if (!series.end.empty()) reserve(gap + end_room(series) + text_width(series.end, small_font));
    if (legend == Legend::above && !series.name.empty()) reserve(entry_width(series) - panel.width);
    if (legend == Legend::beside && !series.name.empty()) reserve(2 * gap + entry_width(series));
  }
  for (const Label& label : panel.labels) {
    if (label.pin != Pin::left) continue;
    reserve(panel.x.place(label.x) * panel.width + label.right + text_width(label.text, label.font) - panel.width);
  }
  if (!panel.title.empty()) margins.top += title_line;
  if (!panel.subtitle.empty()) margins.top += small_line;
  if (legend == Legend::above)
    margins.top += height_of(entries_of({&panel}, panel.width)) + (panel.title.empty() ? gap : 0);
  if (!is_blank(panel.x)) margins.bottom = panel.x.name.empty() ? 34 : 62;
  if (legend == Legend::beside) {
    margins.bottom = std::max(margins.bottom, height_of(entries_of({&panel}, 0)) - panel.height + gap);
  }
  return margins;
}

/// A panel and where its plot area begins in the picture.
struct Placed {
  Panel panel;
  int x = 0, y = 0;
};

struct Canvas {
  int width = 0, height = 0;
  std::vector<Placed> panels;

  /// A place in pixels from the upper left corner, as gnuplot says it.
  [[nodiscard]] std::string at(double x, double y) const {
    return fmt::format("screen {:.5f},{:.5f}", x / width, 1.0 - y / height);
  }
};

/// Row after row. The plot areas of a row begin at one height, those of a column at one distance from the left.
Canvas lay_out(const std::vector<Panel>& panels, std::size_t columns, Legend legend, int top) {
  columns = std::min(columns, panels.size());
  std::vector<Margins> margins;
  margins.reserve(panels.size());
  for (const Panel& panel : panels) margins.push_back(margins_of(panel, legend));
  std::vector<int> lefts(columns), steps(columns);  // of each column: its margin, and how far away the next one begins
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const std::size_t column = i % columns;
    lefts[column] = std::max(lefts[column], margins[i].left);
    const bool last = column + 1 == columns || i + 1 == panels.size();
    if (last) continue;
    const int title = panels[i + 1].title.empty() ? 0 : margins[i].title;
    steps[column] = std::max(steps[column], panels[i].width + std::max(margins[i].right, title));
  }
  Canvas canvas{0, top, {}};
  for (std::size_t first = 0; first < panels.size(); first += columns) {
    const std::size_t end = std::min(panels.size(), first + columns);
    int x = 0, above = 0, below = 0;
    for (std::size_t i = first; i < end; ++i) above = std::max(above, margins[i].top);
    for (std::size_t i = first; i < end; ++i) {
      below = std::max(below, panels[i].height + margins[i].bottom);
      x += lefts[i - first];
      canvas.panels.push_back({panels[i], x, canvas.height + above});
      canvas.width = std::max(canvas.width, x + panels[i].width + std::max(margins[i].right, margins[i].title));
      x += steps[i - first];
    }
    canvas.height += above + below;
  }
  return canvas;
}

// ---- scripts

std::string text_at(const std::string& place, std::string_view text, Pin pin, int font, std::string_view colour) {
  if (text.empty()) return {};
  static constexpr std::array<std::string_view, 3> words = {"left", "center", "right"};
  return fmt::format("set label {} at {} {} front font ',{}' textcolor rgb '{}'\n", gnuplot_string(text), place,
                     words[static_cast<std::size_t>(pin)], font, colour);
}

/// A piece of the series' line, its dot or a square of its area, the middle of the left end at this place.
std::string swatch_script(const Canvas& canvas, const Series& series, double x, double y) {
  if (swatch_of(series) == Swatch::line) {
    return fmt::format("set arrow from {} to {} nohead front linewidth {} linecolor rgb '{}'{}\n", canvas.at(x, y),
                       canvas.at(x + line_room - 6, y), series.line, series.colour, dash_clause(series));
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
    if (series.end.empty() || last == series.points.rend()) continue;
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
    script += text_at(canvas.at(x + end_room(*shown[i]), y), shown[i]->end, Pin::left, small_font, shown[i]->colour);
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

std::string panel_script(const Canvas& canvas, const Placed& placed, std::size_t number, Legend legend) {
  const Panel& panel = placed.panel;
  std::string script = fmt::format("set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\n",
                                   static_cast<double>(placed.x) / canvas.width,
                                   static_cast<double>(placed.x + panel.width) / canvas.width);
  script += fmt::format("set tmargin at screen {:.5f}\nset bmargin at screen {:.5f}\n",
                        1.0 - static_cast<double>(placed.y) / canvas.height,
                        1.0 - static_cast<double>(placed.y + panel.height) / canvas.height);
  script += panel.frame ? "set border 15 linecolor rgb '#bbbbbb'\n" : "set border 3 linecolor rgb '#4d4d4d'\n";
  script += "unset grid\n" + axis_script('x', panel.x) + axis_script('y', panel.y);
  // From the plot area upwards: legend, subtitle, title.
  int y = placed.y - gap / 2;
  if (legend == Legend::above) {
    const std::vector<Entry> entries = entries_of({&panel}, panel.width);
    y -= height_of(entries);
    script += legend_script(canvas, entries, placed.x, y);
  } else if (legend == Legend::beside) {
    script += legend_script(canvas, entries_of({&panel}, 0), placed.x + panel.width + gap, placed.y);
  }
  if (!panel.subtitle.empty()) {
    const int middle = y - small_line / 2;
    script += text_at(canvas.at(placed.x, middle), panel.subtitle, Pin::left, small_font, grey);
    y -= small_line;
  }
  const int middle = y - title_line / 2;
  script += text_at(canvas.at(placed.x, middle), panel.title, Pin::left, title_font, black);
  script += level_script(canvas, placed) + end_script(canvas, placed);
  for (const Label& label : panel.labels) {
    script += text_at(canvas.at(placed.x + panel.x.place(label.x) * panel.width + label.right,
                                placed.y + (1.0 - panel.y.place(label.y)) * panel.height - label.up),
                      label.text, label.pin, label.font, label.colour);
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
  std::vector<Panel> panels = figure.panels;
  for (Panel& panel : panels) complete(panel);
  std::vector<const Panel*> all;
  all.reserve(panels.size());
  for (const Panel& panel : panels) all.push_back(&panel);
  int head = figure.title.empty() ? 0 : title_line;
  Canvas canvas = lay_out(panels, figure.columns, figure.legend, head);
  std::string above;
  if (figure.legend == Legend::shared) {
    const std::vector<Entry> entries = entries_of(all, canvas.width - least_left - least_right);
    canvas = lay_out(panels, figure.columns, figure.legend, head + gap + height_of(entries));
    above = legend_script(canvas, entries, least_left, head + gap);
  }
  if (!figure.title.empty()) {
    above += text_at(canvas.at(least_left, title_line - 5), figure.title, Pin::left, title_font + 1, black);
  }
  std::string script = "set encoding utf8\n" + terminal_script(format, canvas.width, canvas.height) +
                       R"(set multiplot
set tics nomirror out scale 0.6 textcolor rgb '#333333'
set grid linecolor rgb '#e4e4e4' linetype 1 linewidth 1
set format xy '%g'
unset key
)" + above;
  for (std::size_t i = 0; i < canvas.panels.size(); ++i) {
    script += panel_script(canvas, canvas.panels[i], i, figure.legend);
  }
  return run_gnuplot(script + "unset multiplot\n");
}

}  // namespace foretrain

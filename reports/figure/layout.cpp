#include "reports/figure/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int least_left = 80, least_right = 28, gap = figure_gap;
constexpr int dot_room = 14, line_room = 34, name_line = 20;

/// The text in lines of this width; as it is where there is no limit.
std::string broken(const std::string& text, int font, int pixels) {
  if (pixels <= 0 || text.empty()) return text;
  return wrap(text, std::max(8, pixels / std::max(1, text_width("x", font))), 0);
}

int widest_line(const std::string& text, int font) {
  int widest = 0;
  for (const std::string& line : lines_of(text)) widest = std::max(widest, text_width(line, font));
  return widest;
}

int count_lines(const std::string& text) { return text.empty() ? 0 : static_cast<int>(lines_of(text).size()); }

int widest_label(const std::vector<Tic>& tics, int font) {
  int widest = 0;
  for (const Tic& tic : tics) widest = std::max(widest, widest_line(tic.label, font));
  return widest;
}

/// Whether the axis has no room for labels and needs none.
bool is_blank(const Axis& axis) {
  return axis.name.empty() && !axis.tics.empty() && widest_label(axis.tics, axis.font) == 0;
}

/// Chooses what the panel leaves open: ranges and colours.
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
    for (std::size_t i = 0; i < std::min(series.points.size(), series.ranges.size()); ++i) {
      up.push_back(series.ranges[i].high);
    }
  }
  if (across.empty()) throw UsageError("there is nothing to draw: " + panel.title);
  for (const Level& level : panel.levels) {
    if (!level.vertical) up.push_back(level.at);
  }
  set_range(panel.x, across, false);
  set_range(panel.y, up, true);
}

// ---- print

/// Height of the rows of bars, with labels and values.
int height_of_rows(const Panel& panel) {
  constexpr int label_line = 20, value_line = 15, between = 6;
  int row = 0;
  for (const Tic& tic : panel.y.tics) row = std::max(row, label_line * count_lines(tic.label));
  for (const Label& label : panel.labels) row = std::max(row, value_line * count_lines(label.text));
  return (row + between) * static_cast<int>(panel.y.tics.size());
}

/// With tics; in a picture that is printed so wide (0: on screens), with texts in lines: labels of rows of bars, and
/// what is written behind these.
Panel sized(Panel panel, int width, int height, int print) {
  const int row = static_cast<int>(0.34 * print), value = static_cast<int>(0.3 * print);
  panel.width = width;
  panel.height = height;
  choose_tics(panel.x, width, true);
  choose_tics(panel.y, height, false);
  if (print > 0) {
    for (Tic& tic : panel.y.tics) tic.label = broken(tic.label, panel.y.font, row);
    panel.x.name = broken(panel.x.name, panel.x.font, width + least_right);
    panel.y.name = broken(panel.y.name, panel.y.font, height + least_right);
  }
  std::erase_if(panel.labels, [&](const Label& label) {
    if (label.room <= 0.0) return false;
    const double pixels = (panel.x.place(panel.x.low + label.room) - panel.x.place(panel.x.low)) * width;
    return text_width(label.text, label.font) + 6 > pixels;
  });
  for (Label& label : panel.labels) {
    if (print > 0 && label.pin == Pin::left && !label.free) {
      label.text = broken(label.text, label.font, value);
    }
  }
  if (panel.rows) panel.height = std::max(height, height_of_rows(panel));
  place_free_labels(panel);
  return panel;
}

// ---- layout

int entry_width(const Series& series) { return swatch_room(series) + text_width(series.name, small_font); }

struct Margins {
  int left = 0, right = 0, top = 0, bottom = 0;
  int title = 0;  ///< at the right as well, where another title stands beside this one
};

/// Margins of a panel around its plot area, with its legend. In print titles are broken instead of reaching beyond it.
Margins margins_of(Panel& panel, Legend legend, bool print) {
  Margins margins{24, least_right, gap, gap};
  const auto beyond = [&](const std::string& text, int font) { return text_width(text, font) - panel.width; };
  if (!is_blank(panel.y)) {
    // gnuplot guesses generously how wide the labels are between an axis and its name.
    const int guessed_font = panel.y.name.empty() ? panel.y.font : 20;
    margins.left = std::max(print ? 0 : least_left, 28 + widest_label(panel.y.tics, guessed_font));
    margins.left += small_line * (count_lines(panel.y.name) - (panel.y.name.empty() ? 0 : 1));
    margins.left += print && !panel.y.name.empty() ? small_line : 0;
  }
  const auto reserve = [&](double width) { margins.right = std::max(margins.right, static_cast<int>(width) + gap); };
  for (const Series& series : panel.series) {
    if (series.at_end) reserve(gap + end_room(series) + text_width(end_text(series), small_font));
    if (series.at_end || series.name.empty()) continue;
    if (legend == Legend::above) reserve(entry_width(series) - panel.width);
    if (legend == Legend::beside) reserve(2 * gap + entry_width(series));
  }
  for (const Label& label : panel.labels) {
    if (label.pin != Pin::left) continue;
    reserve(panel.x.place(label.x) * panel.width + label.right + widest_line(label.text, label.font) - panel.width);
  }
  const int name_beyond = (widest_line(panel.x.name, panel.x.font) - panel.width) / 2;
  margins.left = std::max(margins.left, name_beyond);
  reserve(name_beyond);
  if (print) {
    panel.title = broken(panel.title, title_font, panel.width + margins.right);
    panel.subtitle = broken(panel.subtitle, small_font, panel.width + margins.right);
  } else {
    margins.title = beyond(panel.title, title_font) + gap;
    reserve(beyond(panel.subtitle, small_font));
  }
  margins.top += title_line * count_lines(panel.title) + small_line * count_lines(panel.subtitle);
  if (legend == Legend::above)
    margins.top += height_of(entries_of({&panel}, panel.width)) + (panel.title.empty() ? gap : 0);
  margins.top = std::max(margins.top, (widest_line(panel.y.name, panel.y.font) - panel.height) / 2);
  if (!is_blank(panel.x)) margins.bottom = panel.x.name.empty() ? 34 : 42 + name_line * count_lines(panel.x.name);
  if (legend == Legend::beside) {
    margins.bottom = std::max(margins.bottom, height_of(entries_of({&panel}, 0)) - panel.height + gap);
  }
  return margins;
}

/// Row after row. The plot areas of a row begin at one height, those of a column at one distance from the left.
Canvas in_columns(std::vector<Panel> panels, std::size_t columns, Legend legend, int top, bool print) {
  columns = std::min(columns, panels.size());
  std::vector<Margins> margins;
  margins.reserve(panels.size());
  for (Panel& panel : panels) margins.push_back(margins_of(panel, legend, print));
  std::vector<int> lefts(columns), steps(columns);  // of each column: its margin, and how far away the next one begins
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const std::size_t column = i % columns;
    lefts[column] = std::max(lefts[column], margins[i].left);
    const bool last = column + 1 == columns || i + 1 == panels.size();
    if (last) continue;
    const int title = panels[i + 1].title.empty() ? 0 : margins[i].title;
    steps[column] = std::max(steps[column], panels[i].width + std::max(margins[i].right, title));
  }
  Canvas canvas;
  canvas.height = top;
  canvas.legend = legend;
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

/// With the figure's title and the legend that panels share above them.
Canvas with_head(const Figure& figure, const std::vector<Panel>& panels, std::size_t columns, int width) {
  const bool print = width > 0;
  Canvas canvas = in_columns(panels, columns, figure.legend, 0, print);
  const int left = print ? gap : least_left;
  const int room = (print ? width : std::max(canvas.width, least_left)) - left;
  canvas.title = print ? broken(figure.title, title_font + 1, room) : figure.title;
  int head = title_line * count_lines(canvas.title);
  if (!print) canvas.width = std::max(canvas.width, left + text_width(figure.title, title_font + 1));
  if (figure.legend == Legend::shared) {
    std::vector<const Panel*> all;
    for (const Panel& panel : panels) all.push_back(&panel);
    canvas.legend_left = left;
    canvas.legend_top = head + gap;
    canvas.legend_width = room - (print ? 0 : least_right);
    head += gap + height_of(entries_of(all, canvas.legend_width));
  }
  for (Placed& placed : canvas.panels) placed.y += head;
  canvas.height += head;
  return canvas;
}

/// Whether all series that end in a name look the same in every panel, so that one legend serves all.
bool names_agree(const Figure& figure) {
  for (const Panel& panel : figure.panels) {
    for (const Series& one : panel.series) {
      if (one.name.empty()) continue;
      for (const Panel& other : figure.panels) {
        const auto same = std::ranges::find(other.series, one.name, &Series::name);
        if (same != other.series.end() && same->colour != one.colour) return false;
      }
    }
  }
  return true;
}

/// Lines of one colour are distinguished by their places alone: their names stay at their ends, without values.
void move_ends_to_legend(Figure& figure) {
  bool rows = false;
  for (Panel& panel : figure.panels) {
    rows = rows || panel.rows;
    std::map<std::string_view, int> ends;
    for (const Series& series : panel.series) ends[series.colour] += series.at_end ? 1 : 0;
    for (Series& series : panel.series) {
      series.at_end = series.at_end && ends[series.colour] > 1;
      series.value.clear();
    }
  }
  const bool one_serves_all = (rows || figure.panels.size() > 1) && names_agree(figure);
  figure.legend = one_serves_all ? Legend::shared : Legend::above;
}

/// So wide, with its panels in so many columns: their widths follow from what their margins leave.
Canvas fitted(const Figure& figure, std::size_t columns, int width) {
  constexpr int narrowest = 60, lowest = 100, passes = 6;
  std::vector<int> widths;
  for (const Panel& panel : figure.panels) widths.push_back(panel.width);
  Canvas canvas;
  for (int pass = 0; pass < passes; ++pass) {
    std::vector<Panel> panels;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const Panel& panel = figure.panels[i];
      const int height = panel.rows ? panel.height : std::max(lowest, panel.height * widths[i] / panel.width);
      panels.push_back(sized(panel, widths[i], height, width));
    }
    canvas = with_head(figure, panels, columns, width);
    const int each = (width - canvas.width) / static_cast<int>(std::min(columns, widths.size()));
    if (each == 0 || pass + 1 == passes) break;
    for (int& one : widths) one = std::max(narrowest, one + each);
  }
  return canvas;
}

/// Whether curves have enough of the picture.
bool is_legible(const Canvas& canvas, int width) {
  constexpr int least = 130;
  int sum = 0, row = -1;
  for (const Placed& placed : canvas.panels) {
    if (placed.panel.width < least) return false;
    if (row >= 0 && placed.y != row) break;
    row = placed.y;
    sum += placed.panel.width;
  }
  return canvas.width <= width && sum * 2 >= width;
}

Canvas printed(Figure figure) {
  const int width = static_cast<int>(std::lround(figure.width_cm / 2.54 * print_pixels_per_inch));
  Canvas canvas;
  for (std::size_t columns = std::min(figure.columns, figure.panels.size()); columns > 0; --columns) {
    Figure without_ends = figure;
    move_ends_to_legend(without_ends);
    for (const Figure& way : {figure, without_ends}) {
      canvas = fitted(way, columns, width);
      if (is_legible(canvas, width)) break;
    }
    if (is_legible(canvas, width)) break;
  }
  if (canvas.width > width) {
    throw UsageError(fmt::format("--width {:.3g} cm: too narrow for what is drawn; at least {:.1f} cm", figure.width_cm,
                                 std::ceil(canvas.width * 25.4 / print_pixels_per_inch) / 10.0));
  }
  canvas.width = width;
  return canvas;
}

}  // namespace

std::vector<std::string> lines_of(const std::string& text) { return split(text, '\n'); }

int swatch_room(const Series& series) { return swatch_of(series) == Swatch::line ? line_room : dot_room; }

int end_room(const Series& series) {
  const bool solid = swatch_of(series) == Swatch::line && dash_clause(series).empty();
  return solid ? 0 : swatch_room(series);
}

std::string end_text(const Series& series) {
  return series.value.empty() ? series.name : fmt::format("{}  {}", series.name, series.value);
}

std::vector<Entry> entries_of(const std::vector<const Panel*>& panels, int width) {
  std::vector<Entry> entries;
  int x = 0, line = 0;
  for (const Panel* panel : panels) {
    for (const Series& series : panel->series) {
      const auto same = [&](const Entry& entry) { return entry.series->name == series.name; };
      if (series.at_end || series.name.empty() || std::ranges::any_of(entries, same)) continue;
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

std::string Canvas::at(double x, double y) const {
  return fmt::format("screen {:.5f},{:.5f}", x / width, 1.0 - y / height);
}

Canvas lay_out(Figure figure) {
  for (Panel& panel : figure.panels) complete(panel);
  if (figure.width_cm > 0.0) return printed(std::move(figure));
  std::vector<Panel> panels;
  for (const Panel& panel : figure.panels) panels.push_back(sized(panel, panel.width, panel.height, 0));
  return with_head(figure, panels, figure.columns, 0);
}

}  // namespace foretrain

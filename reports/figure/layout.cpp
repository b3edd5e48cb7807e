#include "reports/figure/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

// Pixels.
constexpr int least_left = 80, least_right = 28, gap = figure_gap;
constexpr int dot_room = 14, line_room = 34, name_line = 20;

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

/// What has room for no label and needs none.
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

/// With tics, and without labels that have no room.
Panel sized(Panel panel) {
  choose_tics(panel.x, panel.width, true);
  choose_tics(panel.y, panel.height, false);
  std::erase_if(panel.labels, [&](const Label& label) {
    if (label.room <= 0.0) return false;
    const double pixels = (panel.x.place(panel.x.low + label.room) - panel.x.place(panel.x.low)) * panel.width;
    return text_width(label.text, label.font) + 6 > pixels;
  });
  place_free_labels(panel);
  return panel;
}

int entry_width(const Series& series) { return swatch_room(series) + text_width(series.name, small_font); }

struct Margins {
  int left = 0, right = 0, top = 0, bottom = 0;
  int title = 0;  ///< at the right as well, where another title stands beside this one
};

/// What a panel needs around its plot area; its legend too.
Margins margins_of(const Panel& panel, Legend legend) {
  Margins margins{24, least_right, gap, gap};
  const auto beyond = [&](const std::string& text, int font) { return widest_line(text, font) - panel.width; };
  if (!is_blank(panel.y)) {
    // gnuplot guesses generously how wide the labels are between an axis and its name.
    const int guessed_font = panel.y.name.empty() ? panel.y.font : 20;
    margins.left = std::max(least_left, 28 + widest_label(panel.y.tics, guessed_font));
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
    reserve(panel.x.place(label.x) * panel.width + label.right + beyond(label.text, label.font));
  }
  const int name_beyond = beyond(panel.x.name, panel.x.font) / 2;
  margins.left = std::max(margins.left, name_beyond);
  reserve(name_beyond);
  margins.title = beyond(panel.title, title_font) + gap;
  reserve(beyond(panel.subtitle, small_font));
  margins.top += title_line * count_lines(panel.title) + small_line * count_lines(panel.subtitle);
  if (legend == Legend::above)
    margins.top += height_of(entries_of({&panel}, panel.width)) + (panel.title.empty() ? gap : 0);
  margins.top = std::max(margins.top, (text_width(panel.y.name, panel.y.font) - panel.height) / 2);
  if (!is_blank(panel.x)) margins.bottom = panel.x.name.empty() ? 34 : 42 + name_line;
  if (legend == Legend::beside) {
    margins.bottom = std::max(margins.bottom, height_of(entries_of({&panel}, 0)) - panel.height + gap);
  }
  return margins;
}

/// Row after row. The plot areas of a row begin at one height, those of a column at one distance from the left.
Canvas in_columns(const std::vector<Panel>& panels, std::size_t columns, Legend legend) {
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
  Canvas canvas;
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

Canvas lay_out(const Figure& figure) {
  std::vector<Panel> panels = figure.panels;
  for (Panel& panel : panels) {
    complete(panel);
    panel = sized(std::move(panel));
  }
  Canvas canvas = in_columns(panels, figure.columns, figure.legend);
  canvas.title = figure.title;
  canvas.width = std::max(canvas.width, least_left + text_width(figure.title, title_font + 1));
  int head = figure.title.empty() ? 0 : title_line;
  if (figure.legend == Legend::shared) {
    std::vector<const Panel*> all;
    for (const Panel& panel : panels) all.push_back(&panel);
    canvas.legend_left = least_left;
    canvas.legend_top = head + gap;
    canvas.legend_width = canvas.width - least_left - least_right;
    head += gap + height_of(entries_of(all, canvas.legend_width));
  }
  for (Placed& placed : canvas.panels) placed.y += head;
  canvas.height += head;
  return canvas;
}

}  // namespace foretrain

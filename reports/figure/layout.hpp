// Layout of a figure, in pixels: margins that hold every text, legends, columns of panels; and how
// series look to gnuplot. Each colour of the palette has a dot and a dash of its own, so that series are distinguished
// in grey as well.
#pragma once

#include <string>
#include <vector>

#include "reports/figure/figure.hpp"

namespace foretrain {

// Pixels.
inline constexpr int title_font = 15, small_font = 12, title_line = 25, small_line = 18, figure_gap = 14;

/// gnuplot's number of the series' dots, the same in all its terminals.
int point_type(const Series& series);

/// " dashtype …" of its line; empty where it is solid, as lines are whose dots tell them apart.
std::string dash_clause(const Series& series);

/// Legend mark of a series: a piece of its line, a dot, or a square of its area.
enum class Swatch { line, dot, area };
Swatch swatch_of(const Series& series);

/// A series as a block of data of this name and the clauses of `plot` that draw it; `edge` says what borders boxes.
struct SeriesScript {
  std::string data, clauses;
};
SeriesScript series_script(const Series& series, const std::string& edge, const std::string& name);

/// One name of a legend and where it begins, in pixels from the legend's corner.
struct Entry {
  const Series* series;
  int x = 0, line = 0;
};

/// The named series, one behind the other in lines of this width.
std::vector<Entry> entries_of(const std::vector<const Panel*>& panels, int width);
int height_of(const std::vector<Entry>& entries);

/// Before a name in a legend: room for what is shown of the series.
int swatch_room(const Series& series);
/// The same before a name at the end of a line: nothing where the line is solid, and seen to end there.
int end_room(const Series& series);
/// A line's name at its end, and its last value.
std::string end_text(const Series& series);

/// A panel and where its plot area begins in the picture. Its texts are broken into lines ("\n") where print needs it.
struct Placed {
  Panel panel;
  int x = 0, y = 0;
};

struct Canvas {
  int width = 0, height = 0;
  std::string title;
  std::vector<Placed> panels;
  Legend legend = Legend::above;
  int legend_left = 0, legend_top = 0, legend_width = 0;  ///< shared

  /// A place in pixels from the upper left corner, as gnuplot says it.
  [[nodiscard]] std::string at(double x, double y) const;
};

/// The lines of a text that has some.
std::vector<std::string> lines_of(const std::string& text);

/// Moves the panel's free labels beside, above or below their places, where they cover neither dots nor lines nor each
/// other. Those that fit nowhere are left out, the last first. The panel's size and ranges are known.
void place_free_labels(Panel& panel);

/// Chooses what the figure leaves open (ranges, tics, colours), and places all. In print as wide as is asked for: names
/// at ends of lines go into a legend, and panels below each other, where there is too little room. Throws UsageError
/// for a panel in which there is nothing.
Canvas lay_out(Figure figure);

}  // namespace foretrain

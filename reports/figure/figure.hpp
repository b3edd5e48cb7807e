// A picture as a plain value: panels with axes, and what lies in them. Every plot is an adaptor from its result to a
// Figure, and one renderer draws it.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "reports/figure/axis.hpp"
#include "reports/figure/gnuplot.hpp"

namespace foretrain {

/// Colours that people with any colour vision can distinguish (Okabe and Ito 2008, "Color Universal Design").
inline constexpr std::array<std::string_view, 7> palette = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                            "#E69F00", "#56B4E9", "#4D4D4D"};

/// Colours of areas, which have neither dots nor dashes: as far apart in grey (lightness 30, 54, 80, 89, 70 and 39 of
/// 100) as the palette's are in colour.
inline constexpr std::array<std::string_view, 6> area_palette = {"#004B7A", "#D55E00", "#E6BAD4",
                                                                 "#F0E442", "#56B4E9", "#00694D"};

/// Marks of a series' points; own: as its colour has it (layout.hpp).
enum class Dot { none, own, circle, square, triangle, wedge, diamond, ring, frame };

struct Point {
  double x = 0.0, y = 0.0;  ///< a y that is no number ends a line
  double size = 1.0;        ///< times that of the series' points
};

/// From below to above a point.
struct Span {
  double low = 0.0, high = 0.0;
};

/// In the units of the axes.
struct Box {
  double left = 0.0, right = 0.0, low = 0.0, high = 0.0;
};

/// Points joined by a line or not, or boxes, of one colour. A line without dots has its colour's dashes.
struct Series {
  std::string name = {};         ///< in the legend, or at the line's end; empty: in neither
  std::string table_name = {};   ///< its name in tables if it has none
  bool at_end = false;           ///< the name stands right of the panel at the height of the last point
  std::string value = {};        ///< and this behind it
  std::string_view colour = {};  ///< empty: the palette's next one
  std::vector<Point> points = {};
  std::vector<std::string> what = {};  ///< each of the points or boxes is, where that is reported
  std::vector<Span> ranges = {};  ///< around each of the points, drawn as a band of the line's colour; none: no band
  double line = 0.0;              ///< width in pixels; 0: none
  bool dashed = false;
  Dot dot = Dot::none;
  double dot_size = 0.5;
  std::vector<Box> boxes = {};
  bool joined = false;    ///< each box touches the next: one area without seams
  bool measured = false;  ///< as tables say
};

/// A line across the panel, such as a peak or a capacity.
struct Level {
  double at = 0.0;
  std::string name = {};  ///< stands at the line's beginning; that of a vertical one at its top
  bool vertical = false;
  std::string_view colour = "#8c8c8c";
  double width = 1.0;
  bool dashed = true;
};

/// Which part of a text stands at its place.
enum class Pin { left, middle, right };

struct Label {
  std::string text;
  double x = 0.0, y = 0.0;  ///< in the units of the axes
  Pin pin = Pin::middle;
  int right = 0, up = 0;  ///< pixels from there
  std::string_view colour = "#222222";
  int font = 12;
  double room = 0.0;  ///< in the units of x: left out where that is too little; 0: never
  bool free = false;  ///< moves to where it covers nothing; left out where there is no such place
};

/// Series are drawn in their order, levels over them, labels over both.
struct Panel {
  std::string title = {}, subtitle = {};
  int width = 0, height = 0;  ///< of the area between the axes, in pixels
  Axis x = {}, y = {};
  std::vector<Series> series = {};
  std::vector<Level> levels = {};
  std::vector<Label> labels = {};
  bool rows = false;           ///< of bars: its height does not follow its width
  bool frame = false;          ///< a thin line around the panel, instead of the two axes alone
  bool bare = false;           ///< neither axes nor a frame
  std::string_view edge = {};  ///< colour of the boxes' edges; empty: none
};

/// Position of the names of series: above each panel, right of each, or above the first row for all.
enum class Legend { above, beside, shared };

struct Figure {
  std::string title = {};
  std::vector<Panel> panels = {};
  std::size_t columns = 100;  ///< panels in a row
  Legend legend = Legend::above;
  double width_cm = 0.0;  ///< in print, with letters and lines of print; 0: as wide as its panels, for screens
};

/// In print a pixel is 0.6 point: the smallest font of pictures, of 10 pixels, is of 6 points.
inline constexpr double print_pixels_per_inch = 120.0;

/// The figure as a file of this format; the same figure gives the same bytes. Throws as run_gnuplot does, and
/// UsageError for a panel, or a figure, in which there is nothing.
std::string to_picture(const Figure& figure, PictureFormat format);
std::string to_svg(const Figure& figure);

/// Names the series anew, in the order in which legends and tables name them; where there are fewer names, the others
/// keep theirs. Throws UsageError where there are more.
void name_series(Figure& figure, const std::vector<std::string>& names);

/// A row for each point and bar: its panel, its series, and plain numbers in the units that the header names. A column
/// that only other panels have is empty.
std::string to_csv(const Figure& figure);

}  // namespace foretrain

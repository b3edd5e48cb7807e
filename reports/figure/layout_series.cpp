#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/figure/layout.hpp"

namespace foretrain {

namespace {

struct Look {
  Dot dot;
  std::string_view dash;  ///< lengths of strokes and gaps; empty: solid
};
constexpr std::array<Look, palette.size()> looks = {{{Dot::circle, ""},
                                                     {Dot::square, "(14,5)"},
                                                     {Dot::triangle, "(6,4)"},
                                                     {Dot::diamond, "(14,4,3,4)"},
                                                     {Dot::wedge, "(3,4)"},
                                                     {Dot::ring, "(20,5)"},
                                                     {Dot::frame, "(8,3,3,3,3,3)"}}};

/// The look of a colour; of colours outside the palette, that of its first.
const Look& look_of(const Series& series) {
  const auto* const found = std::ranges::find(palette, series.colour);
  return looks.at(found == palette.end() ? 0 : static_cast<std::size_t>(found - palette.begin()));
}

}  // namespace

int point_type(const Series& series) {
  static constexpr std::array<int, 9> types = {0, 7, 7, 5, 9, 11, 13, 6, 4};
  const Dot dot = series.dot == Dot::own ? look_of(series).dot : series.dot;
  return types.at(static_cast<std::size_t>(dot));
}

std::string dash_clause(const Series& series) {
  if (series.dashed) return " dashtype (4,4)";
  const std::string_view dash = look_of(series).dash;
  return series.dot != Dot::none || dash.empty() ? "" : fmt::format(" dashtype {}", dash);
}

Swatch swatch_of(const Series& series) {
  if (series.dot != Dot::none) return Swatch::dot;
  return series.line > 0.0 ? Swatch::line : Swatch::area;
}

SeriesScript series_script(const Series& series, const std::string& edge, const std::string& name) {
  SeriesScript script{name + " << END\n", ""};
  const auto plot = [&](const std::string& clause) {
    script.clauses += fmt::format("{}{} using {}", script.clauses.empty() ? "" : ", ", name, clause);
  };
  for (const Point& point : series.points) {
    script.data += std::isfinite(point.y)
                       ? fmt::format("{:.9g} {:.9g} {:.4g}\n", point.x, point.y, point.size * series.dot_size)
                       : "\n";
  }
  for (const Box& box : series.boxes) {
    script.data +=
        series.joined
            ? fmt::format("{0:.9g} {2:.9g} {3:.9g}\n{1:.9g} {2:.9g} {3:.9g}\n", box.left, box.right, box.low, box.high)
            : fmt::format("{0:.9g} {2:.9g} {0:.9g} {1:.9g} {2:.9g} {3:.9g}\n", box.left, box.right, box.low, box.high);
  }
  script.data += "END\n";
  if (series.joined) {
    plot(fmt::format("1:2:3 with filledcurves fillstyle solid 1 noborder fillcolor rgb '{}'", series.colour));
  } else if (!series.boxes.empty()) {
    plot(fmt::format("1:2:3:4:5:6 with boxxyerror linewidth 0.5 fillstyle solid 1 {} fillcolor rgb '{}'", edge,
                     series.colour));
  }
  if (series.points.empty()) return script;
  if (!series.ranges.empty()) {
    constexpr double share = 0.16;  // of the colour
    script.data += name + "r << END\n";
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      script.data += std::isfinite(series.points[i].y) ? fmt::format("{:.9g} {:.9g} {:.9g}\n", series.points[i].x,
                                                                     series.ranges[i].low, series.ranges[i].high)
                                                       : "\n";
    }
    script.data += "END\n";
    const std::string_view before = script.clauses.empty() ? "" : ", ";
    script.clauses +=
        fmt::format("{}{}r using 1:2:3 with filledcurves fillstyle transparent solid {} noborder fillcolor rgb '{}'",
                    before, name, share, series.colour);
  }
  if (series.line > 0.0) {
    plot(fmt::format("1:2 with lines linewidth {} linecolor rgb '{}'{}", series.line, series.colour,
                     dash_clause(series)));
  }
  if (series.dot != Dot::none) {
    plot(fmt::format("1:2:3 with points pointtype {} pointsize variable linewidth {} linecolor rgb '{}'",
                     point_type(series), series.dot == Dot::ring ? 2 : 1, series.colour));
  }
  return script;
}

}  // namespace foretrain

// How series look to gnuplot. Each colour of the palette has a dot and a dash of its own, so that series are told apart
// in grey as well.
#pragma once

#include <string>

#include "reports/figure/figure.hpp"

namespace foretrain {

/// gnuplot's number of the series' dots, the same in all its terminals.
int point_type(const Series& series);

/// " dashtype …" of its line; empty where it is solid, as lines are whose dots tell them apart.
std::string dash_clause(const Series& series);

/// What a legend shows of the series: a piece of its line, a dot, or a square of its area.
enum class Swatch { line, dot, area };
Swatch swatch_of(const Series& series);

/// A series as a block of data of this name and the clauses of `plot` that draw it; `edge` says what borders boxes.
struct SeriesScript {
  std::string data, clauses;
};
SeriesScript series_script(const Series& series, const std::string& edge, const std::string& name);

}  // namespace foretrain

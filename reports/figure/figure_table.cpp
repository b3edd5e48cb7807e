#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "model/base/csv.hpp"
#include "model/base/error.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

namespace {

using Cells = NamedCells;

/// Name of a series in tables; empty for guide lines and marks.
std::string told_name(const Series& series) {
  const std::string& name = series.name.empty() ? series.table_name : series.name;
  return name.empty() || !series.measured ? name : name + ", measured";
}

std::vector<std::string> names_of_series(const Figure& figure) {
  std::vector<std::string> names;
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      const bool known = std::ranges::find(names, series.name) != names.end();
      if (!series.name.empty() && !known) names.push_back(series.name);
    }
  }
  return names;
}

/// Nine digits: what units leave of rounding behind them is not drawn.
std::string number_cell(double value) {
  return std::isfinite(value) ? fmt::format("{}", std::strtod(fmt::format("{:.9g}", value).c_str(), nullptr)) : "";
}

/// "message (B)": the axis with its unit, which may stand at its tics alone.
std::string column_of(const Axis& axis, const char* otherwise) {
  const std::string name = axis.name.empty() ? otherwise : axis.name;
  return axis.unit.empty() ? name : fmt::format("{} ({})", name, axis.unit);
}

std::string row_name(const Panel& panel, const Box& box) {
  const auto nearest = std::ranges::min_element(
      panel.y.tics, {}, [&](const Tic& tic) { return std::abs(tic.at - 0.5 * (box.low + box.high)); });
  return nearest == panel.y.tics.end() ? "" : nearest->label;
}

void add_range(Cells& cells, const std::string& column, const Series& series, std::size_t i) {
  if (i >= series.ranges.size()) return;
  cells.emplace_back(column + ", low", number_cell(series.ranges[i].low));
  cells.emplace_back(column + ", high", number_cell(series.ranges[i].high));
}

Cells cells_of_box(const Panel& panel, const Series& series, std::size_t i) {
  const Box& box = series.boxes[i];
  const std::string x = column_of(panel.x, "x"), y = column_of(panel.y, "y");
  if (panel.rows) {
    Cells cells = {{"bar", row_name(panel, box)},
                   {x + ", begin", number_cell(box.left)},
                   {x + ", length", number_cell(box.right - box.left)}};
    add_range(cells, x, series, i);
    return cells;
  }
  return {{x, number_cell(0.5 * (box.left + box.right))}, {y, number_cell(box.high - box.low)}};
}

Cells cells_of_point(const Panel& panel, const Series& series, std::size_t i) {
  const std::string y = column_of(panel.y, "y");
  Cells cells = {{column_of(panel.x, "x"), number_cell(series.points[i].x)}, {y, number_cell(series.points[i].y)}};
  add_range(cells, y, series, i);
  return cells;
}

}  // namespace

void name_series(Figure& figure, const std::vector<std::string>& names) {
  const std::vector<std::string> old = names_of_series(figure);
  if (names.size() > old.size()) {
    throw UsageError(
        fmt::format("--labels: {} names for {} series: {}", names.size(), old.size(), fmt::join(old, ", ")));
  }
  const auto place_of = [&](const std::string& name) {
    return static_cast<std::size_t>(std::ranges::find(old, name) - old.begin());
  };
  for (Panel& panel : figure.panels) {
    for (Series& series : panel.series) {
      for (std::string* name : {&series.name, &series.table_name}) {
        if (const std::size_t place = place_of(*name); place < names.size()) *name = names[place];
      }
    }
  }
}

std::string to_csv(const Figure& figure) {
  std::vector<std::string> columns = {"panel", "series"};
  std::vector<Cells> rows;
  const auto add = [&](const Panel& panel, const Series& series, Cells cells) {
    cells.insert(cells.begin(), {{"panel", panel.title}, {"series", told_name(series)}});
    for (const auto& [column, value] : cells) {
      if (std::ranges::find(columns, column) == columns.end()) columns.push_back(column);
    }
    rows.push_back(std::move(cells));
  };
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      if (told_name(series).empty()) continue;
      for (std::size_t i = 0; i < series.boxes.size(); ++i) add(panel, series, cells_of_box(panel, series, i));
      for (std::size_t i = 0; i < series.points.size(); ++i) {
        if (std::isfinite(series.points[i].y)) add(panel, series, cells_of_point(panel, series, i));
      }
    }
  }
  return csv_text(columns, rows);
}

}  // namespace foretrain

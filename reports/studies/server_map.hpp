// When does a parameter server win? A sweep over two keys (and a third, one panel per value), reduced to the best
// server configuration, the ring and the best all-reduce of each cell.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/csv.hpp"
#include "model/base/quantity.hpp"
#include "reports/figure/figure.hpp"

namespace foretrain {

struct MapAxis {
  std::string key;                  ///< "workload.collective.size"
  std::string title;                ///< "message (MB)"
  std::vector<std::string> labels;  ///< one per value, increasing
};

/// Ways of adding up that a map compares: one dedicated server, several, servers on the workers' machines (their CPUs
/// or GPUs), `ring`, and whatever is no parameter server, the ring among them.
enum class MapWay { one, several, colocated, ring, all_reduce };

/// The shortest time of each way, where it was swept.
using MapCell = std::array<std::optional<Seconds>, 5>;

/// One comparison that a map makes in every cell: the best of some kinds of servers with another way.
struct MapBand {
  std::string_view title;
  MapWay first, last;  ///< of the servers
  MapWay other;
  /// Time of servers ÷ time of the other way; nothing where one of the two is missing.
  [[nodiscard]] std::optional<double> ratio(const MapCell& cell) const;
};

struct MapPanel {
  std::string label;           ///< value of the third key
  std::vector<MapCell> cells;  ///< row after row from the lowest y, as many per row as the x axis has labels

  [[nodiscard]] const MapCell& at(std::size_t x, std::size_t y, std::size_t columns) const {
    return cells[y * columns + x];
  }
};

struct MapFigure {
  MapAxis x, y, panel;
  std::vector<MapPanel> panels;
  std::vector<std::string> algorithms;  ///< that are no parameter server, in order of appearance
  std::size_t predictions = 0;
  std::size_t failed = 0;  ///< rows without a prediction

  /// The comparisons for which the sweep has the numbers.
  [[nodiscard]] std::vector<MapBand> bands() const;
};

/// Empty ones: network speed, message size, and ranks where the tables have them.
struct MapKeys {
  std::string x, y, panels;
};

/// -1: the way whose time is this share of the other's is faster, 1: slower; 0: closer than 5 %, as good as each other.
constexpr int verdict_of(double ratio) {
  constexpr double margin = 0.05;
  return ratio < 1.0 - margin ? -1 : ratio > 1.0 + margin ? 1 : 0;
}

/// Reads what `foretrain sweep` wrote. Throws UsageError, naming the file, when a column is missing, and when no row is
/// of a ring or none of a parameter server.
MapFigure map_figure(const std::vector<CsvTable>& tables, const MapKeys& wanted);

/// For each comparison and panel: the time of the servers over the other's, in each cell.
std::string to_text(const MapFigure& figure);

/// One row of panels per comparison, the scale of colours beneath.
Figure to_figure(const MapFigure& map);

}  // namespace foretrain

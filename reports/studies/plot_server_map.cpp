#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/base/number.hpp"
#include "reports/studies/server_map.hpp"

namespace foretrain {

namespace {

// The scale of colours: from a sixteenth to sixteen times.
constexpr int most_doublings = 4, most_class = 2 * most_doublings;

/// A diverging scale that people with any colour vision can read (ColorBrewer RdBu, two steps for each of its colours
/// and between them): blue, the servers are faster; white, as fast; red, slower.
constexpr std::array<std::string_view, 2 * most_class + 1> class_colours = {
    "#2166ac", "#3b7fb9", "#5698c6", "#74b1d3", "#9cc7e0", "#c4deec", "#dcebf3", "#ebf3f7", "#fbfbfb",
    "#fcefe8", "#fde3d4", "#fbd1ba", "#f6b395", "#f1946f", "#e06e54", "#c94340", "#b2182b"};

/// Half doublings, so that cells of one colour can be drawn as one: 0 when the two are as good as each other, and never
/// when they are not.
int class_of(double ratio) {
  const int halves = std::max(1, static_cast<int>(std::lround(2.0 * std::abs(std::log2(ratio)))));
  return std::min(halves, most_class) * verdict_of(ratio);
}

using Classes = std::array<Series, 2 * most_class + 1>;

Classes empty_classes() {
  Classes classes;
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i].colour = class_colours[i];
  return classes;
}

/// In grey, blue cells look like red ones: they have a dot as well.
Series server_marks() { return {.colour = "#10304a", .dot = Dot::circle, .dot_size = 0.3}; }

/// Boxes by their class; neighbours of one class in a row are one box.
std::vector<Series> cells_of(const MapFigure& map, const MapPanel& panel, const MapBand& band) {
  Classes classes = empty_classes();
  Series marks = server_marks();
  const std::size_t columns = map.x.labels.size();
  for (std::size_t y = 0; y < map.y.labels.size(); ++y) {
    const auto row = static_cast<double>(y);
    for (std::size_t x = 0; x < columns; ++x) {
      const std::optional<double> ratio = band.ratio(panel.at(x, y, columns));
      if (!ratio) continue;
      const auto column = static_cast<double>(x);
      if (class_of(*ratio) < 0) marks.points.push_back({column, row});
      std::vector<Box>& boxes = classes[at_index(class_of(*ratio) + most_class)].boxes;
      if (!boxes.empty() && boxes.back().low == row - 0.5 && boxes.back().right == column - 0.5) {
        boxes.back().right = column + 0.5;
      } else {
        boxes.push_back({column - 0.5, column + 0.5, row - 0.5, row + 0.5});
      }
    }
  }
  std::vector<Series> series(classes.begin(), classes.end());
  series.push_back(std::move(marks));
  return series;
}

Axis label_axis(const std::vector<std::string>& labels, const std::string& title) {
  Axis axis{.name = title, .low = -0.5, .high = static_cast<double>(labels.size()) - 0.5, .font = 10};
  for (std::size_t i = 0; i < labels.size(); ++i) axis.tics.push_back({static_cast<double>(i), labels[i]});
  return axis;
}

/// As long, without labels and marks: its only one lies beyond its beginning.
Axis bare_axis(std::size_t length) {
  return {.low = -0.5, .high = static_cast<double>(length) - 0.5, .tics = {{-1.0, ""}}};
}

/// The colours and what they stand for.
Panel key_panel() {
  constexpr int step = 44;
  std::vector<std::string> labels;
  Classes classes = empty_classes();
  Series marks = server_marks();
  for (int doublings = -most_doublings; doublings <= most_doublings; ++doublings) {
    const auto at = static_cast<double>(labels.size());
    labels.push_back(doublings < 0 ? fmt::format("1/{}", 1 << -doublings)
                                   : (doublings == 0 ? "equal" : std::to_string(1 << doublings)));
    classes[at_index(2 * doublings + most_class)].boxes = {{at - 0.5, at + 0.5, -0.5, 0.5}};
    if (doublings < 0) marks.points.push_back({at, 0.0});
  }
  classes.front().name = "blue, with a dot: servers are faster";
  classes.back().name = "red: servers are slower";
  Panel panel{.subtitle = "time of the servers ÷ time of the other way; equal: within 5 %",
              .width = step * static_cast<int>(labels.size()),
              .height = 16,
              .frame = true,
              .edge = "#cccccc"};
  panel.x = label_axis(labels, "");
  panel.y = bare_axis(1);
  panel.series.assign(classes.begin(), classes.end());
  panel.series.push_back(std::move(marks));
  return panel;
}

}  // namespace

Figure to_figure(const MapFigure& map) {
  constexpr int cell_width = 23, cell_height = 15;
  const std::vector<MapBand> bands = map.bands();
  Figure figure{.columns = map.panels.size(), .legend = Legend::beside};
  for (const MapBand& band : bands) {
    for (const MapPanel& cells : map.panels) {
      const bool first = &cells == &map.panels.front(), last = band.title == bands.back().title;
      Panel panel{.title = first ? std::string(band.title) : "",
                  .subtitle = cells.label + " " + map.panel.title,
                  .width = cell_width * static_cast<int>(map.x.labels.size()),
                  .height = cell_height * static_cast<int>(map.y.labels.size()),
                  .series = cells_of(map, cells, band),
                  .frame = true};
      panel.x = label_axis(map.x.labels, last ? map.x.title : "");
      panel.y = label_axis(map.y.labels, map.y.title);
      if (!first) panel.y = bare_axis(map.y.labels.size());
      figure.panels.push_back(std::move(panel));
    }
  }
  if (!bands.empty()) figure.panels.push_back(key_panel());
  return figure;
}

}  // namespace foretrain

#include "reports/figure/plot_latency.hpp"

namespace foretrain {

Figure to_figure(const LatencyFigure& latency) {
  Panel panel{.title = latency.title,
              .subtitle = "line: predicted; points: measured; dashed: size of a cache",
              .width = 660,
              .height = 290};
  panel.x = {.name = "working set", .logarithmic = true, .binary = true};
  panel.y = {.name = "time of one dependent load (ns)", .logarithmic = true, .grid = true};
  Series predicted{.line = 2.0}, measured{.dot = Dot::own, .dot_size = 0.7};
  for (const LatencyFigure::Point& point : latency.points) {
    predicted.points.push_back({point.working_set.value(), point.predicted.value() * 1e9});
    measured.points.push_back({point.working_set.value(), point.measured.value() * 1e9});
  }
  panel.series = {std::move(predicted), std::move(measured)};
  for (const auto& [name, size] : latency.caches) {
    panel.levels.push_back({.at = size.value(), .name = name, .vertical = true});
  }
  return {.panels = {std::move(panel)}};
}

}  // namespace foretrain

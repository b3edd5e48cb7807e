#include "reports/measured/measured_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "model/base/error.hpp"
#include "model/base/words.hpp"

namespace foretrain {

namespace {

/// Of the shortest side of a product: the largest of these that it reaches.
constexpr std::array<std::int64_t, 4> side_classes = {1, 64, 512, 2048};

std::string side_name(std::int64_t least) {
  if (least == side_classes.front()) return fmt::format("shortest side below {}", side_classes[1]);
  const auto* next = std::ranges::upper_bound(side_classes, least);
  return next == side_classes.end() ? fmt::format("{} and more", least) : fmt::format("{} to {}", least, *next - 1);
}

/// Work and rate of each product, by ascending work.
std::map<std::int64_t, std::vector<Point>> products_by_side(const std::vector<PredictedPoint>& points,
                                                            Precision precision) {
  std::map<std::int64_t, std::vector<Point>> drawn;
  for (const PredictedPoint& point : points) {
    const auto* work = point.op ? std::get_if<Matmul>(&point.op->op.work) : nullptr;
    if (work == nullptr || point.op->op.precision != precision) continue;
    const double operations = flops(point.op->op).value();
    const auto* side = std::ranges::upper_bound(side_classes, std::min({work->m, work->n, work->k}));
    drawn[*std::prev(side)].push_back(
        {operations * 1e-9, operations * point.op->repeat / point.measured.value() * 1e-12});
  }
  for (auto& [side, of_side] : drawn) {
    std::ranges::sort(of_side, {}, [](const Point& p) { return std::pair(p.x, p.y); });
  }
  return drawn;
}

}  // namespace

Figure gemm_figure(const std::vector<PredictedPoint>& points) {
  Figure figure{.columns = 2};
  for (int p = 0; p < precision_count; ++p) {
    const auto precision = static_cast<Precision>(p);
    Panel panel{.title = fmt::format("Matrix products, {}", name(precision)), .width = 456, .height = 278};
    panel.x = {.name = "GFLOP of one product", .logarithmic = true};
    panel.y = {.name = "TFLOP/s", .logarithmic = true, .grid = true};
    for (const auto& [side, drawn] : products_by_side(points, precision)) {
      panel.series.push_back(
          {.name = side_name(side), .points = drawn, .line = 0.0, .dot = Dot::own, .dot_size = 0.45});
    }
    if (panel.series.empty()) continue;
    const double peak = points.front().scenario.cluster.node.gpu.matrix_rate(precision).value();
    panel.levels.push_back({.at = peak * 1e-12, .name = "peak"});
    figure.panels.push_back(std::move(panel));
  }
  if (figure.panels.empty()) throw UsageError("no matrix product was measured: there is nothing to draw");
  return figure;
}

RooflineFigure measured_roofline(const std::vector<PredictedPoint>& points) {
  std::vector<Scenario> scenarios;
  std::map<std::string, Seconds> times;
  for (const PredictedPoint& point : points) {
    if (!point.op) continue;
    scenarios.push_back(point.scenario);
    scenarios.back().name = point.raw->record.suite + ": " + point.raw->record.name;
    times[scenarios.back().name] = point.measured;
  }
  RooflineFigure figure = roofline_figure(scenarios);
  for (RooflinePanel& panel : figure.panels) {
    for (RooflinePoint& point : panel.points) point.time = times.at(point.name);
    std::stable_sort(panel.points.begin(), panel.points.end(),
                     [](const RooflinePoint& a, const RooflinePoint& b) { return a.time > b.time; });
  }
  return figure;
}

}  // namespace foretrain

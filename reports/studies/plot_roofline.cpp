#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "reports/print/number.hpp"
#include "reports/studies/roofline.hpp"

namespace foretrain {

namespace {

constexpr std::size_t most_names = 18;
constexpr double tera = 1e12;

std::vector<RooflinePoint> drawn_points(const RooflinePanel& panel) {
  std::vector<RooflinePoint> points;
  std::ranges::copy_if(panel.points, std::back_inserter(points), &RooflinePoint::drawable);
  return points;
}

double dot_size(const RooflinePoint& point, Seconds longest) { return 0.55 + 1.1 * std::sqrt(point.time / longest); }

Point place_of(const RooflinePoint& point) { return {point.intensity().value(), point.rate().value() / tera}; }

/// Decades around the points and the ridges of all roofs.
Axis intensity_axis(const RooflinePanel& panel, const std::vector<RooflinePoint>& points) {
  double low = (panel.roofs.back().rate / panel.bandwidth).value();
  double high = (panel.roofs.front().rate / panel.bandwidth).value();
  for (const RooflinePoint& point : points) {
    low = std::min(low, point.intensity().value());
    high = std::max(high, point.intensity().value());
  }
  return {.name = "arithmetic intensity (FLOP per byte)",
          .logarithmic = true,
          .low = std::pow(10.0, std::floor(std::log10(low) - 0.1)),
          .high = std::pow(10.0, std::ceil(std::log10(high) + 0.1))};
}

Axis rate_axis(const RooflinePanel& panel, const std::vector<RooflinePoint>& points) {
  double low = panel.roofs.back().rate.value();
  for (const RooflinePoint& point : points) low = std::min(low, point.rate().value());
  return {.name = "TFLOP/s",
          .logarithmic = true,
          .low = low / tera / 2.0,
          .high = panel.roofs.front().rate.value() / tera * 1.6,
          .grid = true};
}

/// The slope of the memory's bandwidth up to the highest roof, and the roofs from there on.
std::vector<Series> roofs_of(const RooflinePanel& panel, const Axis& x) {
  const double slope = panel.bandwidth.value() / tera;  // TFLOP/s per FLOP/B
  const double highest = panel.roofs.front().rate.value() / tera;
  std::vector<Series> lines = {{.points = {{x.low, x.low * slope}, {highest / slope, highest}}}};
  for (const Roof& roof : panel.roofs) {
    const double rate = roof.rate.value() / tera;
    lines.push_back({.name = roof.name,
                     .at_end = true,
                     .value = plain_number(rate, 4) + " TFLOP/s",
                     .points = {{rate / slope, rate}, {x.high, rate}}});
  }
  for (Series& line : lines) line.colour = "#6c6c6c", line.line = 1.6;
  return lines;
}

/// The names of the longest points, where there is room for them.
std::vector<Label> point_labels(const std::vector<RooflinePoint>& points) {
  std::vector<Label> labels;
  for (std::size_t i = 0; i < std::min(points.size(), most_names); ++i) {
    const Point at = place_of(points[i]);
    labels.push_back({.text = points[i].name, .x = at.x, .y = at.y, .font = 11, .free = true});
  }
  return labels;
}

}  // namespace

Figure to_figure(const RooflineFigure& roofline) {
  if (roofline.panels.empty()) throw UsageError("plot roofline: no operator to draw");
  Figure figure;
  for (const RooflinePanel& gpu : roofline.panels) {
    const std::vector<RooflinePoint> points = drawn_points(gpu);
    if (points.empty()) throw UsageError("plot roofline: " + gpu.gpu + ": no operator with arithmetic to draw");
    Panel panel{.title = gpu.gpu,
                .subtitle = fmt::format("slope: {} GB/s of device memory; a point's size is its share of the time",
                                        plain_number(gpu.bandwidth.value() * 1e-9, 4)),
                .width = 560,
                .height = 396};
    panel.x = intensity_axis(gpu, points);
    panel.y = rate_axis(gpu, points);
    panel.series = roofs_of(gpu, panel.x);
    panel.labels = point_labels(points);
    for (int p = 0; p < precision_count; ++p) {
      Series dots{.name = std::string(name(static_cast<Precision>(p))), .dot = Dot::own, .dot_size = 1.0};
      for (const RooflinePoint& point : points) {
        if (point.precision != static_cast<Precision>(p)) continue;
        dots.points.push_back(place_of(point));
        dots.what.push_back(fmt::format("{}, {}", point.name, format_seconds(point.time)));
        dots.points.back().size = dot_size(point, points.front().time);
      }
      if (!dots.points.empty()) panel.series.push_back(std::move(dots));
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

}  // namespace foretrain

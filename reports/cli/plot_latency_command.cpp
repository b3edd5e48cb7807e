// Latency by working set: the prediction as a line, what was measured as points, the caches' sizes as marks.
#include <algorithm>
#include <cmath>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/base/units.hpp"
#include "reports/cli/plot.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/detect.hpp"

namespace foretrain {

namespace {

/// Powers of two from the least to the greatest.
std::vector<Tic> binary_tics(double least, double greatest) {
  std::vector<Tic> tics;
  for (double size = std::exp2(std::ceil(std::log2(least))); size <= greatest; size *= 2.0) {
    tics.push_back({size, format_binary_bytes(Bytes(size))});
  }
  return tics;
}

/// Predicted anew from the description in the file: the model may have become better since it was written.
Panel panel_of(CalibrationReport report) {
  const Node node = node_of_hardware_file(report.hardware);
  predict_rows(report, node);
  Panel panel{.title = describe(report.machine),
              .subtitle = "line: predicted; points: measured; dashed: size of a cache",
              .width = 660,
              .height = 290};
  panel.x = {.name = "working set", .logarithmic = true, .unit = "B"};
  panel.y = {.name = "time of one dependent load (ns)", .logarithmic = true, .grid = true};
  Series predicted{.told = "load", .line = 2.0};
  Series measured{.told = "load", .dot = Dot::own, .dot_size = 0.7, .measured = true};
  for (const BenchmarkRow& row : report.rows) {
    if (row.benchmark != "memory_latency_curve" || row.samples == 0 || !row.predicted) continue;
    const double size = parse_quantity<Bytes>(row.parameters.at("working_set")).value();
    predicted.points.push_back({size, *row.predicted * 1e9});
    measured.points.push_back({size, row.reference() * 1e9});
  }
  for (Series* series : {&predicted, &measured}) std::ranges::sort(series->points, {}, &Point::x);
  if (!predicted.points.empty()) panel.x.tics = binary_tics(predicted.points.front().x, predicted.points.back().x);
  panel.series = {std::move(predicted), std::move(measured)};
  if (!node.cpu.hierarchy) return panel;
  for (const CacheLevel& cache : node.cpu.hierarchy->caches) {
    panel.levels.push_back({.at = cache.size.value(), .name = cache.name, .vertical = true});
  }
  return panel;
}

}  // namespace

ExitStatus plot_latency(const PlotOptions& options) {
  Panel panel = panel_of(read_calibration_report(options.file()));
  if (!panel.series.front().points.empty()) return draw(options, {.panels = {std::move(panel)}});
  throw UsageError("plot latency: " + options.file() + " has no rows of memory_latency_curve");
}

}  // namespace foretrain

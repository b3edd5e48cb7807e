#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/units.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot_latency.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/detect.hpp"

namespace foretrain {

namespace {

/// Predicted anew from the description in the file: the model may have become better since it was written.
LatencyFigure latency_of(CalibrationReport report) {
  const Node node = node_of_hardware_file(report.hardware);
  predict_rows(report, node);
  LatencyFigure figure;
  figure.title = describe(report.machine);
  for (const BenchmarkRow& row : report.rows) {
    if (row.benchmark != "memory_latency_curve" || row.samples == 0 || !row.predicted) continue;
    figure.points.push_back(
        {parse_quantity<Bytes>(row.parameters.at("working_set")), Seconds(*row.predicted), Seconds(row.reference())});
  }
  std::sort(figure.points.begin(), figure.points.end(),
            [](const auto& a, const auto& b) { return a.working_set < b.working_set; });
  if (node.cpu.hierarchy) {
    for (const CacheLevel& cache : node.cpu.hierarchy->caches) figure.caches.emplace_back(cache.name, cache.size);
  }
  return figure;
}

}  // namespace

void add_plot_latency(CLI::App& plot, ExitStatus& status) {
  add_plot_command(plot, status,
                   {"latency", "latency of this machine's memory by working set, beside the model", "CALIBRATION",
                    "what `foretrain calibrate -o` wrote", must_draw},
                   [](const PlotOptions& options) {
                     const LatencyFigure latency = latency_of(read_calibration_report(options.file()));
                     if (!latency.points.empty()) return draw(options, to_figure(latency));
                     throw UsageError("plot latency: " + options.file() + " has no rows of memory_latency_curve");
                   });
}

}  // namespace foretrain

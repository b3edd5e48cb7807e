#include <algorithm>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/units.hpp"
#include "reports/cli/plots.hpp"
#include "reports/plot_latency.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/detect.hpp"

namespace foretrain {

namespace {

struct LatencyPlotCommand {
  std::string calibration, output;
};

/// Predicted anew from the description in the file: the model may have become better since it was written.
LatencyFigure figure_of(CalibrationReport report) {
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

ExitStatus run(const LatencyPlotCommand& command) {
  const LatencyFigure figure = figure_of(read_calibration_report(command.calibration));
  if (figure.points.empty()) {
    throw UsageError("plot latency: " + command.calibration + " has no rows of memory_latency_curve");
  }
  write_file(command.output, to_svg(figure));
  return ExitStatus::success;
}

}  // namespace

void add_plot_latency(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<LatencyPlotCommand>();
  CLI::App* command =
      plot.add_subcommand("latency", "latency of this machine's memory by working set, beside the model");
  command->add_option("CALIBRATION", options->calibration, "what `foretrain calibrate -o` wrote")->required();
  command->add_option("-o,--output", options->output, "where the picture goes")->type_name("OUT.svg")->required();
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain

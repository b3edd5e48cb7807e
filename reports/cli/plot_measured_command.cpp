// Pictures of what was measured: folders of foretrain-gpu, this machine's memory, replayed collectives.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/base/error.hpp"
#include "model/base/units.hpp"
#include "reports/cli/plot.hpp"
#include "reports/measured/measured_figures.hpp"
#include "reports/measured/measured_graph.hpp"
#include "reports/measured/replay.hpp"
#include "reports/result/text.hpp"
#include "validate/fit/direct_constants.hpp"
#include "validate/host_calibration/calibrate.hpp"
#include "validate/host_calibration/detect.hpp"
#include "validate/host_replay/measurements.hpp"

namespace foretrain {

namespace {

/// The folder's points on the machine as measured, with published constants. `raw` must outlive them.
PredictedPoints points_of(const RawMeasurements& raw) {
  const PredictedPoints plain = predicted_points(raw, node_document(raw.machine, {}));
  return predicted_points(raw, node_document(raw.machine, measured_figures(raw, plain.points)));
}

std::string worst_cases(const GpuCalibration& fit, int count) {
  std::vector<PointPair> pairs = fit.pairs;
  const auto error = [](const PointPair& pair) { return std::abs(std::log(pair.predicted / pair.measured)); };
  std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) { return error(a) > error(b); });
  std::string text = "Worst:\n";
  for (std::size_t i = 0; i < std::min(pairs.size(), static_cast<std::size_t>(count)); ++i) {
    text += fmt::format("  {:+7.1f} %  {}{}\n", (pairs[i].predicted / pairs[i].measured - 1.0) * 100.0, pairs[i].name,
                        pairs[i].held_out ? " (held out)" : "");
  }
  return text;
}

ExitStatus draw_folder(const PlotOptions& options,
                       Figure (*figure)(const RawMeasurements&, const std::vector<PredictedPoint>&)) {
  const RawMeasurements raw = read_measurements(options.file());
  return draw(options, figure(raw, points_of(raw).points));
}

/// Latency by working set: the prediction as a line, what was measured as points, the caches' sizes as marks.
/// Predicted anew from the description in the file: the model may have become better since it was written.
Panel latency_panel(CalibrationReport report) {
  const Node node = node_of_hardware_file(report.hardware);
  predict_rows(report, node);
  Panel panel{.title = describe(report.machine),
              .subtitle = "line: predicted; points: measured; dashed: size of a cache",
              .width = 660,
              .height = 290};
  panel.x = {.name = "working set", .logarithmic = true, .binary = true};
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
  panel.series = {std::move(predicted), std::move(measured)};
  if (!node.cpu.hierarchy) return panel;
  for (const CacheLevel& cache : node.cpu.hierarchy->caches) {
    panel.levels.push_back({.at = cache.size.value(), .name = cache.name, .vertical = true});
  }
  return panel;
}

TimelineFigure timeline_of(const PlotOptions& options, const std::vector<HostMeasurement>& runs) {
  const auto named = std::ranges::find(runs, options.run, &HostMeasurement::name);
  if (named == runs.end()) throw UsageError("plot replay: " + options.file() + " has no run " + options.run);
  TimelineFigure timeline = host_timeline(*named, options.streams);
  if (!options.until.empty()) timeline.until = moment_of("--until", options.until);
  return timeline;
}

}  // namespace

ExitStatus plot_gemm(const PlotOptions& options) { return draw_folder(options, gemm_figure); }
ExitStatus plot_curves(const PlotOptions& options) { return draw_folder(options, bandwidth_figure); }
ExitStatus plot_busbw(const PlotOptions& options) { return draw_folder(options, bus_bandwidth_figure); }

ExitStatus plot_accuracy(const PlotOptions& options) {
  const GpuCalibration fit = fit_gpu(read_measurements(options.file()));
  if (fit.pairs.empty()) throw UsageError(options.file() + " holds no point that the model predicts");
  const AccuracyReport report = measured_accuracy(fit);
  draw(options, to_figure(report));
  if (!options.distribution.empty()) write_picture(options.distribution, error_distribution(fit));
  print_page(to_text(report, {}) + "\n" + worst_cases(fit, options.worst));
  return ExitStatus::success;
}

ExitStatus plot_latency(const PlotOptions& options) {
  Panel panel = latency_panel(read_calibration_report(options.file()));
  if (!panel.series.front().points.empty()) return draw(options, {.panels = {std::move(panel)}});
  throw UsageError("plot latency: " + options.file() + " has no rows of memory_latency_curve");
}

ExitStatus plot_replay(const PlotOptions& options) {
  if (is_measured_graph(read_text_file(options.file(), 100'000'000))) {
    const MeasuredGraph graph = read_measured_graph(options.file());
    if (graph.steps.empty()) throw UsageError("plot replay: " + graph.name + " could not be run");
    return draw(options, to_figure(measured_timeline(graph)));
  }
  const std::vector<HostMeasurement> runs = read_host_measurements(options.file()).runs;
  if (!options.run.empty()) return draw(options, to_figure(timeline_of(options, runs)));
  const std::string group = options.group.empty() ? "host-scaling" : options.group;
  const CaseFigure cases = replayed_cases(runs, group);
  if (cases.panels.empty()) throw UsageError("plot replay: no group's name begins with " + group);
  return draw(options, to_figure(cases));
}

}  // namespace foretrain

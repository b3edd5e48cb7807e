// Pictures of folders that foretrain-gpu measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "model/base/files.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plots.hpp"
#include "reports/measured_figures.hpp"
#include "reports/plot_accuracy.hpp"
#include "reports/text.hpp"
#include "validate/fit/direct_constants.hpp"

namespace foretrain {

namespace {

struct MeasuredCommand {
  std::string folder, output, distribution;
  int worst = 10;
};

/// The folder's points on the machine as measured, with published constants. `raw` must outlive them.
PredictedPoints points_of(const RawMeasurements& raw) {
  const PredictedPoints plain = predicted_points(raw, node_document(raw.machine, {}));
  return predicted_points(raw, node_document(raw.machine, measured_figures(raw, plain.points)));
}

ExitStatus draw(const MeasuredCommand& command, CurveFigure (*figure)(const RawMeasurements&, const PredictedPoints&)) {
  const RawMeasurements raw = read_measurements(command.folder);
  write_file(command.output, to_svg(figure(raw, points_of(raw))));
  return ExitStatus::success;
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

ExitStatus draw_accuracy(const MeasuredCommand& command) {
  const RawMeasurements raw = read_measurements(command.folder);
  const GpuCalibration fit = fit_gpu(raw);
  if (fit.pairs.empty()) throw UsageError(command.folder + " holds no point that the model predicts");
  const AccuracyReport report = measured_accuracy(fit);
  write_file(command.output, accuracy_svg(report));
  if (!command.distribution.empty()) write_file(command.distribution, to_svg(error_distribution(fit)));
  print(to_text(report, {}) + "\n" + worst_cases(fit, command.worst));
  return ExitStatus::success;
}

CLI::App* add_folder_command(CLI::App& plot, const char* name, const char* what,
                             const std::shared_ptr<MeasuredCommand>& options) {
  CLI::App* command = plot.add_subcommand(name, what);
  command->add_option("DIR", options->folder, "a folder that foretrain-gpu measured")->required();
  command->add_option("-o,--output", options->output, "where the picture goes")->type_name("OUT.svg")->required();
  return command;
}

}  // namespace

void add_plot_measured(CLI::App& plot, ExitStatus& status) {
  const auto gemm = std::make_shared<MeasuredCommand>();
  add_folder_command(plot, "gemm", "rates of measured matrix products by size and shape", gemm)
      ->callback([gemm, &status] {
        status = draw(*gemm,
                      [](const RawMeasurements&, const PredictedPoints& points) { return gemm_figure(points.points); });
      });
  const auto curves = std::make_shared<MeasuredCommand>();
  add_folder_command(plot, "curves", "measured bandwidth and latency of memory, copies and links by size", curves)
      ->callback([curves, &status] {
        status = draw(*curves, [](const RawMeasurements& raw, const PredictedPoints& points) {
          return bandwidth_figure(raw, points.points);
        });
      });
  const auto busbw = std::make_shared<MeasuredCommand>();
  add_folder_command(plot, "busbw", "measured bus bandwidth of collectives by message", busbw)
      ->callback([busbw, &status] {
        status = draw(*busbw, [](const RawMeasurements&, const PredictedPoints& points) {
          return bus_bandwidth_figure(points.points);
        });
      });
  const auto accuracy = std::make_shared<MeasuredCommand>();
  CLI::App* command =
      add_folder_command(plot, "accuracy", "a fit's predictions beside what was measured, worst first", accuracy);
  command->add_option("--distribution", accuracy->distribution, "also draw how errors are distributed")
      ->type_name("OUT.svg");
  command->add_option("--worst", accuracy->worst, "how many of the worst to list")
      ->check(CLI::Range(0, 1000).description(""));
  command->callback([accuracy, &status] { status = draw_accuracy(*accuracy); });
}

}  // namespace foretrain

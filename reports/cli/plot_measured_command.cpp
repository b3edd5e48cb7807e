// Pictures of folders that foretrain-gpu measured.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/base/error.hpp"
#include "reports/cli/plot.hpp"
#include "reports/measured/measured_figures.hpp"
#include "reports/result/text.hpp"
#include "validate/fit/direct_constants.hpp"

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

struct AccuracyOptions {
  std::string distribution;
  int worst = 10;
};

ExitStatus draw_accuracy(const PlotOptions& shared, const AccuracyOptions& options) {
  const GpuCalibration fit = fit_gpu(read_measurements(shared.file()));
  if (fit.pairs.empty()) throw UsageError(shared.file() + " holds no point that the model predicts");
  const AccuracyReport report = measured_accuracy(fit);
  draw(shared, to_figure(report));
  if (!options.distribution.empty()) write_picture(options.distribution, error_distribution(fit));
  print_page(to_text(report, {}) + "\n" + worst_cases(fit, options.worst));
  return ExitStatus::success;
}

/// A picture of a folder's points.
struct FolderPicture {
  const char *name, *what;
  Figure (*figure)(const RawMeasurements& raw, const std::vector<PredictedPoint>& points);
};
constexpr std::array<FolderPicture, 3> folder_pictures = {
    {{"gemm", "rates of measured matrix products by size and shape",
      [](const RawMeasurements&, const std::vector<PredictedPoint>& points) { return gemm_figure(points); }},
     {"curves", "measured bandwidth and latency of memory, copies and links by size", bandwidth_figure},
     {"busbw", "measured bus bandwidth of collectives by message",
      [](const RawMeasurements&, const std::vector<PredictedPoint>& points) { return bus_bandwidth_figure(points); }}}};

PlotCommand folder_command(const char* name, const char* what) {
  return {name, what, "DIR", "a folder that foretrain-gpu measured", must_draw};
}

}  // namespace

void add_plot_measured(CLI::App& plot, ExitStatus& status) {
  for (const FolderPicture& picture : folder_pictures) {
    add_plot_command(plot, status, folder_command(picture.name, picture.what), [&picture](const PlotOptions& options) {
      const RawMeasurements raw = read_measurements(options.file());
      return draw(options, picture.figure(raw, points_of(raw).points));
    });
  }
  const auto options = std::make_shared<AccuracyOptions>();
  CLI::App* command = add_plot_command(
      plot, status, folder_command("accuracy", "a fit's predictions beside what was measured, worst first"),
      [options](const PlotOptions& shared) { return draw_accuracy(shared, *options); });
  add_picture(*command, "--distribution", options->distribution, "also draw how errors are distributed");
  command->add_option("--worst", options->worst, "how many of the worst to list")
      ->check(CLI::Range(0, 1000).description(""));
}

}  // namespace foretrain

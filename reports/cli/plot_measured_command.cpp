// Pictures of folders that foretrain-gpu measured.
#include <fmt/format.h>

#include <algorithm>
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

ExitStatus draw_folder(const PlotOptions& options,
                       Figure (*figure)(const RawMeasurements&, const std::vector<PredictedPoint>&)) {
  const RawMeasurements raw = read_measurements(options.file());
  return draw(options, figure(raw, points_of(raw).points));
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

}  // namespace foretrain

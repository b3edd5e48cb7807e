#include <algorithm>
#include <map>

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/studies/roofline.hpp"
#include "validate/fit/describe.hpp"

namespace foretrain {

namespace {

/// Measured operators beneath the roofs of their GPU: work and least traffic of the model, time as measured.
RooflineFigure measured_roofline(const std::string& folder) {
  const RawMeasurements raw = read_measurements(folder);
  std::vector<Scenario> scenarios;
  std::map<std::string, Seconds> times;
  for (const PredictedPoint& point : predicted_points(raw, node_document(raw.machine, {})).points) {
    if (!point.op) continue;
    scenarios.push_back(point.scenario);
    scenarios.back().name = point.raw->record.suite + ": " + point.raw->record.name;
    times[scenarios.back().name] = point.measured;
  }
  RooflineFigure figure = roofline_figure(scenarios);
  for (RooflinePanel& panel : figure.panels) {
    for (RooflinePoint& point : panel.points) point.time = times.at(point.name);
    std::ranges::stable_sort(panel.points, std::ranges::greater{}, &RooflinePoint::time);
  }
  return figure;
}

}  // namespace

ExitStatus plot_roofline(const PlotOptions& options) {
  if (options.files.empty() == options.measurements.empty()) {
    throw UsageError("plot roofline: name either scenarios or --measurements DIR");
  }
  if (!options.measurements.empty()) return show(options, measured_roofline(options.measurements));
  std::vector<Scenario> scenarios;
  for (const std::string& file : options.files) scenarios.push_back(load_scenario(file, options.overrides));
  return show(options, roofline_figure(scenarios));
}

}  // namespace foretrain

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/measured/measured_figures.hpp"
#include "validate/fit/describe.hpp"

namespace foretrain {

ExitStatus plot_roofline(const PlotOptions& options) {
  if (options.files.empty() == options.measurements.empty()) {
    throw UsageError("plot roofline: name either scenarios or --measurements DIR");
  }
  if (!options.measurements.empty()) {
    const RawMeasurements raw = read_measurements(options.measurements);
    return show(options, measured_roofline(predicted_points(raw, node_document(raw.machine, {})).points));
  }
  std::vector<Scenario> scenarios;
  for (const std::string& file : options.files) scenarios.push_back(load_scenario(file, options.overrides));
  return show(options, roofline_figure(scenarios));
}

}  // namespace foretrain

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/measured/measured_figures.hpp"

namespace foretrain {

namespace {

RooflineFigure roofline_of(const PlotOptions& options, const std::string& measurements) {
  if (!measurements.empty()) {
    if (!options.files.empty()) throw UsageError("plot roofline: either scenarios or --measurements DIR");
    const RawMeasurements raw = read_measurements(measurements);
    return measured_roofline(predicted_points(raw, node_document(raw.machine, {})).points);
  }
  if (options.files.empty()) throw UsageError("plot roofline: name scenarios, or --measurements DIR");
  std::vector<Scenario> scenarios;
  for (const std::string& file : options.files) scenarios.push_back(load_scenario(file, options.overrides));
  return roofline_figure(scenarios);
}

}  // namespace

void add_plot_roofline(CLI::App& plot, ExitStatus& status) {
  const auto measurements = std::make_shared<std::string>();
  const PlotCommand command = {"roofline", "operators beneath the roofs of their GPU: FLOP per byte against FLOP/s",
                               "FILE", "scenarios: an operator, tasks, or training, whose operators are added up",
                               any_inputs | takes_overrides};
  add_plot_command(
      plot, status, command,
      [measurements](const PlotOptions& options) { return show(options, roofline_of(options, *measurements), true); })
      ->add_option("--measurements", *measurements, "the operators that foretrain-gpu measured into this folder")
      ->type_name("DIR");
}

}  // namespace foretrain

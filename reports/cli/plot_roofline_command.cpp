#include <memory>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/scenario/load.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plots.hpp"
#include "reports/measured_figures.hpp"
#include "reports/plot_roofline.hpp"

namespace foretrain {

namespace {

struct RooflineCommand {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::string output, measurements;
};

RooflineFigure figure_of(const RooflineCommand& command) {
  if (!command.measurements.empty()) {
    if (!command.files.empty()) throw UsageError("plot roofline: either scenarios or --measurements DIR");
    const RawMeasurements raw = read_measurements(command.measurements);
    return measured_roofline(predicted_points(raw, node_document(raw.machine, {})).points);
  }
  if (command.files.empty()) throw UsageError("plot roofline: name scenarios, or --measurements DIR");
  std::vector<Scenario> scenarios;
  for (const std::string& file : command.files) scenarios.push_back(load_scenario(file, command.overrides));
  return roofline_figure(scenarios);
}

ExitStatus run(const RooflineCommand& command) {
  const RooflineFigure figure = figure_of(command);
  if (!command.output.empty()) write_file(command.output, roofline_svg(figure));
  print(to_text(figure));
  return ExitStatus::success;
}

}  // namespace

void add_plot_roofline(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<RooflineCommand>();
  CLI::App* command =
      plot.add_subcommand("roofline", "operators beneath the roofs of their GPU: FLOP per byte against FLOP/s");
  command->add_option("FILE", options->files,
                      "scenarios: an operator, tasks, or training, whose operators are added up");
  command
      ->add_option("--measurements", options->measurements,
                   "the operators that foretrain-gpu measured into this folder")
      ->type_name("DIR");
  command->add_option("-o,--output", options->output, "draw it as well")->type_name("OUT.svg");
  add_overrides(*command, options->overrides);
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain

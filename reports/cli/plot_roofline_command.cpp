#include <memory>

#include "model/base/files.hpp"
#include "model/scenario/load.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plots.hpp"
#include "reports/plot_roofline.hpp"

namespace foretrain {

namespace {

struct RooflineCommand {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::string output;
};

ExitStatus run(const RooflineCommand& command) {
  std::vector<Scenario> scenarios;
  for (const std::string& file : command.files) scenarios.push_back(load_scenario(file, command.overrides));
  const RooflineFigure figure = roofline_figure(scenarios);
  if (!command.output.empty()) write_file(command.output, roofline_svg(figure));
  print(to_text(figure));
  return ExitStatus::success;
}

}  // namespace

void add_plot_roofline(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<RooflineCommand>();
  CLI::App* command =
      plot.add_subcommand("roofline", "operators beneath the roofs of their GPU: FLOP per byte against FLOP/s");
  command
      ->add_option("FILE", options->files, "scenarios: an operator, tasks, or training, whose operators are added up")
      ->required();
  command->add_option("-o,--output", options->output, "draw it as well")->type_name("OUT.svg");
  add_overrides(*command, options->overrides);
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain

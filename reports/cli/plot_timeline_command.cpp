#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/units.hpp"
#include "model/scenario/load.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plots.hpp"
#include "reports/plot_timeline.hpp"
#include "sim/predict.hpp"

namespace foretrain {

namespace {

struct TimelineCommand {
  std::string file, output, from, until;
  std::vector<std::string> overrides;
  Fidelity fidelity = Fidelity::flows;
};

Seconds date(const std::string& option, const std::string& text) {
  try {
    return parse_quantity<Seconds>(text);
  } catch (const UnitError& error) {
    throw UsageError("plot timeline: " + option + " " + text + ": " + error.got() + "; a time, such as 2 ms");
  }
}

ExitStatus run(const TimelineCommand& command) {
  StepResult result = predict(load_scenario(command.file, command.overrides), command.fidelity, Timeline::fill);
  TimelineFigure figure;
  figure.title = result.scenario;
  figure.entries = std::move(result.timeline);
  if (figure.entries.empty()) throw UsageError("plot timeline: a single operator has no timeline");
  if (!command.from.empty()) figure.from = date("--from", command.from);
  if (!command.until.empty()) figure.until = date("--until", command.until);
  try {
    write_file(command.output, to_svg(figure));
  } catch (const std::invalid_argument& error) {
    throw UsageError(std::string("plot timeline: ") + error.what());
  }
  return ExitStatus::success;
}

}  // namespace

void add_plot_timeline(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<TimelineCommand>();
  CLI::App* command = plot.add_subcommand("timeline", "what runs where, and when: a bar for each task");
  command->add_option("FILE", options->file, "a scenario of tasks, a collective or a training step")->required();
  command->add_option("--from", options->from, "leave out what lies before (default: the start)")->type_name("TIME");
  command->add_option("--until", options->until, "leave out what lies behind (default: the end)")->type_name("TIME");
  command->add_option("-o,--output", options->output, "where the picture goes")->type_name("OUT.svg")->required();
  add_fidelity(*command, options->fidelity);
  add_overrides(*command, options->overrides);
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain

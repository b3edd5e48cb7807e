#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "reports/cli/plots.hpp"
#include "reports/measured_graph.hpp"
#include "reports/plot_replay.hpp"
#include "validate/host_replay/measurements.hpp"

namespace foretrain {

namespace {

struct ReplayPlotCommand {
  std::string measurements, output;
  std::string group = "host-scaling";
};

ExitStatus run(const ReplayPlotCommand& command) {
  if (is_measured_graph(read_text_file(command.measurements, 100'000'000))) {
    const MeasuredGraph graph = read_measured_graph(command.measurements);
    if (graph.steps.empty()) throw UsageError("plot replay: " + graph.name + " could not be run");
    write_file(command.output, to_svg(measured_timeline(graph)));
    return ExitStatus::success;
  }
  const auto panels = replay_panels(read_host_measurements(command.measurements).runs, command.group);
  if (panels.empty()) throw UsageError("plot replay: no group's name begins with " + command.group);
  write_file(command.output, to_svg(panels));
  return ExitStatus::success;
}

}  // namespace

void add_plot_replay(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<ReplayPlotCommand>();
  CLI::App* command = plot.add_subcommand(
      "replay", "replayed all-reduces by number of workers, or the timeline of one graph on GPUs, beside predictions");
  command->add_option("MEASUREMENTS", options->measurements, "what `foretrain replay -o` wrote, or replay-NAME.json")
      ->required();
  command->add_option("--group", options->group, "one panel for each group whose name begins so")->type_name("NAME");
  command->add_option("-o,--output", options->output, "where the picture goes")->type_name("OUT.svg")->required();
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain

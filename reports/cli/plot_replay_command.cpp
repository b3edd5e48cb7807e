#include "model/base/error.hpp"
#include "reports/cli/plot.hpp"
#include "reports/measured/measured_graph.hpp"
#include "reports/measured/replay.hpp"
#include "validate/host_replay/measurements.hpp"

namespace foretrain {

namespace {

ExitStatus run(const PlotOptions& options, const std::string& group) {
  if (is_measured_graph(read_text_file(options.file(), 100'000'000))) {
    const MeasuredGraph graph = read_measured_graph(options.file());
    if (graph.steps.empty()) throw UsageError("plot replay: " + graph.name + " could not be run");
    return draw(options, to_figure(measured_timeline(graph)));
  }
  const auto panels = replay_panels(read_host_measurements(options.file()).runs, group);
  if (panels.empty()) throw UsageError("plot replay: no group's name begins with " + group);
  return draw(options, to_figure(panels));
}

}  // namespace

void add_plot_replay(CLI::App& plot, ExitStatus& status) {
  const auto group = std::make_shared<std::string>("host-scaling");
  const PlotCommand command = {
      "replay", "replayed all-reduces by number of workers, or the timeline of one graph on GPUs, beside predictions",
      "MEASUREMENTS", "what `foretrain replay -o` wrote, or replay-NAME.json", must_draw};
  add_plot_command(plot, status, command, [group](const PlotOptions& options) { return run(options, *group); })
      ->add_option("--group", *group, "one panel for each group whose name begins so")
      ->type_name("NAME");
}

}  // namespace foretrain

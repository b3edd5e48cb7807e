#include <algorithm>

#include "model/base/error.hpp"
#include "reports/cli/plot.hpp"
#include "reports/measured/measured_graph.hpp"
#include "reports/measured/replay.hpp"
#include "validate/host_replay/measurements.hpp"

namespace foretrain {

namespace {

struct ReplayFigure {
  std::string group = "host-scaling";
  std::string run, streams, until;
};

ExitStatus run(const PlotOptions& options, const ReplayFigure& figure) {
  if (is_measured_graph(read_text_file(options.file(), 100'000'000))) {
    const MeasuredGraph graph = read_measured_graph(options.file());
    if (graph.steps.empty()) throw UsageError("plot replay: " + graph.name + " could not be run");
    return draw(options, to_figure(measured_timeline(graph)));
  }
  const std::vector<HostMeasurement> runs = read_host_measurements(options.file()).runs;
  if (!figure.run.empty()) {
    const auto named = std::ranges::find(runs, figure.run, &HostMeasurement::name);
    if (named == runs.end()) throw UsageError("plot replay: " + options.file() + " has no run " + figure.run);
    TimelineFigure timeline = host_timeline(*named, figure.streams);
    if (!figure.until.empty()) timeline.until = moment_of("--until", figure.until);
    return draw(options, to_figure(timeline));
  }
  const auto panels = replay_panels(runs, figure.group);
  if (panels.empty()) throw UsageError("plot replay: no group's name begins with " + figure.group);
  return draw(options, to_figure(panels));
}

}  // namespace

void add_plot_replay(CLI::App& plot, ExitStatus& status) {
  const auto figure = std::make_shared<ReplayFigure>();
  const PlotCommand command = {
      "replay", "replayed collectives by number of workers, or the timeline of one graph, beside predictions",
      "MEASUREMENTS", "what `foretrain replay -o` wrote, or replay-NAME.json", must_draw};
  CLI::App* added =
      add_plot_command(plot, status, command, [figure](const PlotOptions& options) { return run(options, *figure); });
  added->add_option("--group", figure->group, "one panel for each group whose name begins so")->type_name("NAME");
  added->add_option("--run", figure->run, "between hosts: the timeline of this run, measured with --timeline")
      ->type_name("NAME");
  added->add_option("--streams", figure->streams, "of the timeline those streams whose names contain this")
      ->type_name("WORD");
  added->add_option("--until", figure->until, "leave out of the timeline what lies behind (default: the end)")
      ->type_name("TIME");
}

}  // namespace foretrain

#include <algorithm>

#include "model/base/error.hpp"
#include "reports/cli/plot.hpp"
#include "reports/measured/measured_graph.hpp"
#include "reports/measured/replay.hpp"
#include "validate/host_replay/measurements.hpp"

namespace foretrain {

namespace {

TimelineFigure timeline_of(const PlotOptions& options, const std::vector<HostMeasurement>& runs) {
  const auto named = std::ranges::find(runs, options.run, &HostMeasurement::name);
  if (named == runs.end()) throw UsageError("plot replay: " + options.file() + " has no run " + options.run);
  TimelineFigure timeline = host_timeline(*named, options.streams);
  timeline.until = end_of(options);
  return timeline;
}

}  // namespace

ExitStatus plot_replay(const PlotOptions& options) {
  if (is_measured_graph(read_text_file(options.file(), 100'000'000))) {
    const MeasuredGraph graph = read_measured_graph(options.file());
    if (graph.steps.empty()) throw UsageError("plot replay: " + graph.name + " could not be run");
    return draw(options, to_figure(measured_timeline(graph)));
  }
  const std::vector<HostMeasurement> runs = read_host_measurements(options.file()).runs;
  if (options.run.empty()) throw UsageError("plot replay: which run? --run NAME; `plot cases` draws a table of them");
  return draw(options, to_figure(timeline_of(options, runs)));
}

}  // namespace foretrain

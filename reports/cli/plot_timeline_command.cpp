#include <stdexcept>

#include "model/base/error.hpp"
#include "model/base/units.hpp"
#include "model/scenario/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/plot_timeline.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

struct TimelineOptions {
  std::string from, until;
};

Seconds date(const std::string& option, const std::string& text) {
  try {
    return parse_quantity<Seconds>(text);
  } catch (const UnitError& error) {
    throw UsageError("plot timeline: " + option + " " + text + ": " + error.got() + "; a time, such as 2 ms");
  }
}

ExitStatus run(const PlotOptions& shared, const TimelineOptions& options) {
  Result result = predict(load_scenario(shared.file(), shared.overrides), shared.fidelity, Timeline::fill);
  TimelineFigure timeline;
  timeline.title = result.scenario;
  timeline.entries = std::move(result.timeline);
  if (timeline.entries.empty()) throw UsageError("plot timeline: a single operator has no timeline");
  if (!options.from.empty()) timeline.from = date("--from", options.from);
  if (!options.until.empty()) timeline.until = date("--until", options.until);
  try {
    return draw(shared, to_figure(timeline));
  } catch (const std::invalid_argument& error) {
    throw UsageError(std::string("plot timeline: ") + error.what());
  }
}

}  // namespace

void add_plot_timeline(CLI::App& plot, ExitStatus& status) {
  const auto options = std::make_shared<TimelineOptions>();
  CLI::App* command = add_plot_command(
      plot, status,
      {"timeline", "what runs where, and when: a bar for each task", "FILE",
       "a scenario of tasks, a collective or a training step", must_draw | takes_overrides | takes_fidelity},
      [options](const PlotOptions& shared) { return run(shared, *options); });
  command->add_option("--from", options->from, "leave out what lies before (default: the start)")->type_name("TIME");
  command->add_option("--until", options->until, "leave out what lies behind (default: the end)")->type_name("TIME");
}

}  // namespace foretrain

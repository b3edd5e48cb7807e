#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "reports/cli/plot.hpp"
#include "reports/cli/shared_reports.hpp"
#include "reports/figure/plot.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/kineto_events.hpp"
#include "reports/result/trace.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

std::vector<TimelineEntry> measured_entries(const std::string& file, int rank_class) {
  std::vector<TimelineEntry> entries;
  try {
    for (TraceEvent& event : read_events(read_imported_file(file), file)) {
      const bool is_word =
          std::ranges::all_of(event.category, [](unsigned char c) { return std::isalpha(c) || c == '_'; });
      const std::string category = event.category.empty() || !is_word ? "compute" : event.category;
      entries.push_back({"measured " + category, std::move(event.name), Seconds(event.start * 1e-6),
                         Seconds(event.duration * 1e-6), -1, category, rank_class});
    }
  } catch (const ScenarioError& error) {
    throw UsageError(fmt::format("--beside is no trace in Chrome's format: {}", error.what()));
  }
  if (entries.empty()) throw UsageError("--beside " + file + " has no events");
  const Seconds first = std::ranges::min_element(entries, {}, &TimelineEntry::start)->start;
  for (TimelineEntry& entry : entries) entry.start -= first;
  return entries;
}

namespace {

ExitStatus write_trace(const PlotOptions& options) {
  const bool packed = options.output.ends_with(".json.gz");
  if (!packed && !options.output.ends_with(".json")) {
    throw UsageError("timeline: -o " + options.output +
                     ": a trace is written as .json or .json.gz; "
                     "`foretrain plot timeline` draws an .svg");
  }
  Result result =
      predict(planned_file(options.file(), options.overrides, options.fidelity), options.fidelity, Detail::timeline);
  if (result.timeline.empty()) throw UsageError("timeline: a single operator has no timeline");
  if (!options.beside.empty()) {
    const int classes = std::ranges::max_element(result.timeline, {}, &TimelineEntry::rank_class)->rank_class + 1;
    std::ranges::move(measured_entries(options.beside, classes), std::back_inserter(result.timeline));
  }
  const std::string trace = to_trace(result.scenario, result.timeline);
  write_file(options.output, packed ? gzip(trace) : trace);
  return ExitStatus::success;
}

}  // namespace

void add_timeline(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<PlotOptions>(
      app, "timeline", "Write the timeline of a step as a trace for Perfetto or Chrome", status, write_trace);
  command.add_option("FILE", options.files, "a scenario of tasks, a collective or a training step")
      ->required()
      ->expected(1);
  add_text(command, "-o,--output", options.output, "TRACE.json|TRACE.json.gz", "the trace")->required();
  add_text(command, "--beside", options.beside, "TRACE.json|TRACE.json.gz",
           "a measured step of torch.profiler, as a process of its own; both begin at 0");
  add_fidelity(command, options.fidelity);
  add_overrides(command, options.overrides);
}

ExitStatus plot_timeline(const PlotOptions& options) {
  Result result =
      predict(planned_file(options.file(), options.overrides, options.fidelity), options.fidelity, Detail::timeline);
  TimelineFigure timeline;
  timeline.title = result.scenario;
  timeline.entries = std::move(result.timeline);
  if (timeline.entries.empty()) throw UsageError("plot timeline: a single operator has no timeline");
  if (!options.beside.empty()) {
    const std::vector<TimelineEntry> measured = measured_entries(options.beside);
    timeline.entries.insert(timeline.entries.end(), measured.begin(), measured.end());
  }
  timeline.until = end_of(options);
  return draw(options, to_figure(timeline));
}

}  // namespace foretrain

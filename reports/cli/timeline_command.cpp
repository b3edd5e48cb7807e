#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "reports/cli/plot.hpp"
#include "reports/figure/plot_timeline.hpp"
#include "reports/result/trace.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

ExitStatus write_trace(const PlotOptions& options) {
  const bool packed = options.output.ends_with(".json.gz");
  if (!packed && !options.output.ends_with(".json")) {
    throw UsageError("timeline: -o " + options.output +
                     ": a trace is written as .json or .json.gz; "
                     "`foretrain plot timeline` draws an .svg");
  }
  const Result result =
      predict(planned_file(options.file(), options.overrides, options.fidelity), options.fidelity, Detail::timeline);
  if (result.timeline.empty()) throw UsageError("timeline: a single operator has no timeline");
  const std::string trace = to_trace(result.scenario, result.timeline);
  write_file(options.output, packed ? gzip(trace) : trace);
  return ExitStatus::success;
}

/// The events of a trace in Chrome's format, as Kineto writes it, from its first one on: rows of their own.
std::vector<TimelineEntry> measured_entries(const std::string& file) {
  constexpr std::size_t most = 100'000'000;
  std::vector<TimelineEntry> entries;
  try {
    const nlohmann::json trace = nlohmann::json::parse(read_text_file(file, most));
    for (const auto& event : trace.at("traceEvents")) {
      if (event.value("ph", "") != "X") continue;
      const std::string category = event.value("cat", "compute");
      entries.push_back({"measured " + category, event.value("name", ""), Seconds(event.value("ts", 0.0) * 1e-6),
                         Seconds(event.value("dur", 0.0) * 1e-6), -1, category});
    }
  } catch (const nlohmann::json::exception& error) {
    throw UsageError("plot timeline: --beside " + file + " is no trace in Chrome's format: " + error.what());
  }
  if (entries.empty()) throw UsageError("plot timeline: --beside " + file + " has no events");
  const Seconds first = std::ranges::min_element(entries, {}, &TimelineEntry::start)->start;
  for (TimelineEntry& entry : entries) entry.start -= first;
  return entries;
}

}  // namespace

void add_timeline(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<PlotOptions>(
      app, "timeline", "Write the timeline of a step as a trace for Perfetto or Chrome", status, write_trace);
  command.add_option("FILE", options.files, "a scenario of tasks, a collective or a training step")
      ->required()
      ->expected(1);
  add_text(command, "-o,--output", options.output, "TRACE.json|TRACE.json.gz", "the trace")->required();
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

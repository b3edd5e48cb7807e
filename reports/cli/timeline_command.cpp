#include "model/base/error.hpp"
#include "reports/cli/plot.hpp"
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

}  // namespace

void add_timeline(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<PlotOptions>(
      app, "timeline", "what runs where and when, as a trace for Perfetto or Chrome", status, write_trace);
  command.add_option("FILE", options.files, "a scenario of tasks, a collective or a training step")
      ->required()
      ->expected(1);
  add_text(command, "-o,--output", options.output, "TRACE.json|TRACE.json.gz", "the trace")->required();
  add_fidelity(command, options.fidelity);
  add_overrides(command, options.overrides);
}

}  // namespace foretrain

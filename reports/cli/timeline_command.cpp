#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/plot.hpp"
#include "reports/result/trace.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

void write_trace(const PlotOptions& options) {
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
}

}  // namespace

void add_timeline(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<PlotOptions>();
  CLI::App* command = app.add_subcommand("timeline", "what runs where and when, as a trace for Perfetto or Chrome");
  command->add_option("FILE", options->files, "a scenario of tasks, a collective or a training step")
      ->required()
      ->expected(1);
  command->add_option("-o,--output", options->output, "the trace")->type_name("TRACE.json|TRACE.json.gz")->required();
  add_fidelity(*command, options->fidelity);
  add_overrides(*command, options->overrides);
  command->callback([options, &status] {
    write_trace(*options);
    status = ExitStatus::success;
  });
}

}  // namespace foretrain

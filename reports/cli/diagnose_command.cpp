#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/base/units.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plan_uncertainty.hpp"
#include "reports/cli/workers.hpp"
#include "reports/diagnose/diagnosis.hpp"
#include "reports/import/training_log.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

struct DiagnoseOptions {
  std::string file, measured, log;
  std::vector<std::string> traces;
  std::vector<std::string> overrides;
  Fidelity fidelity = Fidelity::flows;
  bool json = false;
};

/// The time of a step, said in a log by itself or as a rate of what the scenario trains.
Seconds step_of_log(const LoggedRun& run, const Scenario& scenario, Fidelity fidelity) {
  if (run.quantity == LogQuantity::time) return Seconds(run.median);
  const Result result = predict(scenario, fidelity, Detail::numbers);
  const TrainResult* train = result.train();
  if (train == nullptr) throw UsageError("a log's rate gives a step time of trainings only");
  const double rate = run.quantity == LogQuantity::samples_per_second  ? train->samples_per_second
                      : run.quantity == LogQuantity::tokens_per_second ? train->tokens_per_second
                                                                       : train->tokens_per_second_per_gpu;
  if (!(rate > 0.0)) throw UsageError(run.file + ": a log of tokens, and a scenario without any");
  return result.time() * (rate / run.median);
}

Seconds parsed_time(const std::string& text) {
  try {
    const auto time = parse_quantity<Seconds>(text);
    if (time > Seconds(0.0)) return time;
  } catch (const UnitError& error) {
    throw UsageError(fmt::format("--measured {}: {}; {}", text, error.got(), error.expected()));
  }
  throw UsageError(fmt::format("--measured {}: not above zero; the time of a step, such as '2.1 s'", text));
}

StepEvidence evidence_of(const LoggedRun& log, const Scenario& scenario, Fidelity fidelity) {
  const double tenth = log.slowest_tenth / log.median;
  StepEvidence evidence{step_of_log(log, scenario, fidelity)};
  evidence.pause = std::max(log.checkpoint_share, 0.0) * evidence.step;
  evidence.step += evidence.pause;
  if (log.steps > 3) evidence.varies = log.quantity == LogQuantity::time ? tenth : 1.0 / tenth;
  return evidence;
}

/// Idle time is scaled to the measured step: not where another training's was traced.
void warn_of_other_step(const TraceDiagnosis& traces) {
  constexpr double far = 2.0;
  if (!traces.traced || *traces.traced <= Seconds(0.0)) return;
  const double times = traces.measured / *traces.traced;
  if (times <= far && times >= 1.0 / far) return;
  warn(fmt::format("the measured step, {}, is {:.3g} times the traced one, {}: are they of the same training?",
                   format_seconds(traces.measured), times, format_seconds(*traces.traced)));
}

std::vector<RankTrace> read_traces(const std::vector<std::string>& files) {
  std::vector<RankTrace> traces;
  for (const std::string& file : files) traces.push_back({file, summarise_kineto(read_imported_file(file), file)});
  return traces;
}

ExitStatus run(const DiagnoseOptions& options) {
  const bool number = !options.measured.empty(), log = !options.log.empty(), traced = !options.traces.empty();
  if ((number && log) || !(number || log || traced)) {
    throw UsageError("diagnose takes the measured step from --measured '2.1 s', from --log FILE or from --trace FILE");
  }
  const std::vector<std::string> overrides = planned_overrides(options.file, options.overrides, options.fidelity);
  const Reload reload = [&](const std::vector<std::string>& further) {
    std::vector<std::string> all = overrides;
    all.insert(all.end(), further.begin(), further.end());
    return load_scenario(options.file, all);
  };
  const Scenario scenario = reload({});
  std::ranges::for_each(scenario.assumed, warn);
  const Fidelity fidelity = what_if_fidelity(scenario, options.fidelity);
  std::string source;
  std::optional<StepEvidence> evidence;
  if (number) evidence = StepEvidence{parsed_time(options.measured)};
  if (log) {
    ImportInput input;
    input.file = options.log;
    input.text = read_imported_file(options.log);
    const LoggedRun logged = read_training_log(input);
    evidence = evidence_of(logged, scenario, fidelity);
    source = fmt::format("{} log, median of {}", logged.format, logged.text());
  }
  std::optional<TraceDiagnosis> traces;
  if (traced) {
    const std::optional<Seconds> step = evidence ? std::optional(evidence->step - evidence->pause) : std::nullopt;
    traces = diagnose_traces(scenario, read_traces(options.traces), step, fidelity);
    warn_of_other_step(*traces);
    if (!evidence) evidence = StepEvidence{traces->measured};
    evidence->parts = traces->parts;
    evidence->lag = traces->lag;
    evidence->communication = traces->communication;
    evidence->bucket = traces->bucket;
  }
  StepDiagnosis diagnosis = diagnose_step(scenario, reload, *evidence, fidelity, tasks_shared_out(default_workers()));
  diagnosis.source = source;
  if (options.json) {
    print(to_json(diagnosis, traces) + "\n");
  } else {
    print_page(to_text(diagnosis, traces));
  }
  return ExitStatus::success;
}

}  // namespace

void add_diagnose(CLI::App& app, ExitStatus& status) {
  auto [command, options] =
      add_command<DiagnoseOptions>(app, "diagnose", "Rank the causes of a step slower than predicted", status, run);
  command.add_option("FILE", options.file, "a scenario file, or a name from `foretrain scenarios list`")->required();
  add_text(command, "--measured", options.measured, "TIME", "measured step time, such as '2.1 s'");
  add_text(command, "--log", options.log, "LOG", "the training log, as `import log` reads it");
  command.add_option("--trace", options.traces, "traces of torch.profiler (.json, .json.gz), one a rank")->expected(-1);
  add_fidelity(command, options.fidelity);
  add_overrides(command, options.overrides);
  command.add_flag("--json", options.json, "for programs, with all causes");
}

}  // namespace foretrain

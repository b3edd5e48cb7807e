#include "model/base/csv.hpp"
#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/anchors.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/result/csv.hpp"
#include "reports/result/json.hpp"
#include "reports/result/text.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

struct PredictOptions {
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::string anchor;
  std::vector<std::string> settings;  ///< also of the anchor's runs
  Fidelity fidelity = Fidelity::flows;
  std::string output;
  bool json = false;
  bool csv = false;
  bool verbose = false;
  bool strict = false;
  int jobs = 1;

  /// A file's name says its format, unless an option does.
  [[nodiscard]] bool writes_json() const { return json || (!csv && output.ends_with(".json")); }
};

/// One prediction is made here; several are shared out among processes.
std::vector<Outcome> predict_files(const PredictOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  overrides.insert(overrides.end(), options.settings.begin(), options.settings.end());
  std::optional<MeasuredRuns> runs;
  if (!options.anchor.empty()) {
    runs = measured_runs(options.anchor, options.settings, options.fidelity, options.jobs);
  }
  const Predictor predictor = [&](std::size_t i) {
    const Scenario scenario = planned_file(options.files[i], overrides, options.fidelity);
    Result result = runs ? predict_beside(*runs, scenario, options.fidelity) : predict(scenario, options.fidelity);
    if (options.writes_json()) result.resolved = resolved_values(scenario);
    return result;
  };
  if (options.files.size() == 1) return {Outcome{predictor(0), "", false}};
  return predict_with_progress(options.files.size(), options.jobs, predictor);
}

/// A row for each result, in the columns of sweeps.
std::string to_csv(const std::vector<Result>& results) {
  std::vector<std::string> header = predicted_columns();
  header.insert(header.begin(), "scenario");
  std::string text = csv_line(header) + "\n";
  for (const Result& result : results) {
    std::vector<std::string> cells = predicted_cells(result);
    cells.insert(cells.begin(), result.scenario);
    text += csv_line(cells) + "\n";
  }
  return text;
}

void print_results(const std::vector<Result>& results, const PredictOptions& options) {
  const bool json = options.writes_json();
  const bool csv = options.csv || (!options.json && options.output.ends_with(".csv"));
  std::string text;
  if (json) {
    text = (results.size() == 1 ? to_json(results.front()) : to_json(results)) + "\n";
  } else if (csv) {
    text = to_csv(results);
  } else {
    for (const Result& result : results)
      text += (text.empty() ? "" : "\n\n") + to_text(result, TextOptions{options.verbose});
  }
  if (!options.output.empty()) return write_file(options.output, text);
  json || csv ? print(text) : print_page(text);
}

ExitStatus run(const PredictOptions& options) {
  ExitStatus status = ExitStatus::success;
  const std::vector<Result> results = results_of(predict_files(options), status);
  if (status != ExitStatus::success) return status;
  print_results(results, options);
  if (!options.strict) return status;
  for (const Result& result : results) {
    if (!result.train() || result.train()->memory.fits()) continue;
    warn(result.scenario + ": does not fit into the memory of a GPU; `foretrain memory` lists remedies");
    status = ExitStatus::prediction_failed;
  }
  return status;
}

}  // namespace

void add_predict(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<PredictOptions>(
      app, "predict", "Predict the step time, memory and bottleneck of scenarios", status, run);
  command
      .add_option("FILE", options.files,
                  "scenario files, names from `foretrain scenarios list`, or - for standard input")
      ->required();
  add_fidelity(command, options.fidelity);
  add_overrides(command, options.overrides);
  add_calibration(command, options.settings);
  add_jobs(command, options.jobs);
  add_text(command, "--anchor", options.anchor, "RUNS.csv",
           "scale predictions to your measured runs of the same model");
  CLI::Option* json = command.add_flag("--json", options.json, "print JSON: an object, or an array for several files");
  command.add_flag("--csv", options.csv, "print CSV: one row per file, with the columns of sweeps")->excludes(json);
  add_text(command, "-o,--output", options.output, "OUT", "write the result to a file: .json, .csv or text");
  command.add_flag("--verbose", options.verbose, "list all settings and constants with their sources");
  command.add_flag("--strict", options.strict, "exit with status 1 if the plan does not fit in memory");
}

}  // namespace foretrain

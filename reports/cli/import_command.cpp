#include <fmt/format.h>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/training_log.hpp"

namespace foretrain {

namespace {

ImportInput input_of(const std::string& file, const ImportInput& options) {
  ImportInput input = options;
  input.file = file;
  input.text = read_imported_file(file);
  return input;
}

/// A table of all logs. Where the arguments of one become no scenario, its row has none, and why is reported.
std::string imported_logs(const std::vector<std::string>& files, const ImportInput& options,
                          const std::string& scenario_output) {
  std::vector<LoggedRun> runs;
  for (const std::string& file : files) {
    const ImportInput input = input_of(file, options);
    LoggedRun& run = runs.emplace_back(read_training_log(input));
    if (!options.scenario.empty()) continue;
    std::string why = "no arguments at the log's head";
    try {
      run.scenario = scenario_at_head(input);
    } catch (const ScenarioError& error) {
      why = error.what();
    }
    if (run.scenario.empty())
      warn(fmt::format("{}: no scenario: {}; --base SCENARIO states what was trained", file, why));
  }
  if (const std::string remark = assumed_machine(runs); !remark.empty()) warn(remark);
  std::string table = log_table(runs, options.scenario, options.overrides);
  if (scenario_output.empty()) return table;
  if (runs.front().scenario.empty()) throw UsageError(files.front() + ": there is no scenario to write");
  write_file(scenario_output, runs.front().scenario);
  return table;
}

}  // namespace

void add_import(CLI::App& app, ExitStatus& status) {
  struct Options {
    std::vector<std::string> files;
    std::string output, scenario_output;
    ImportInput input;
  };
  CLI::App* command =
      app.add_subcommand("import", "Import files of other tools as scenarios, hardware and tables of cases");
  command->require_subcommand(1);
  for (const Importer& importer : importers()) {
    const auto options = std::make_shared<Options>();
    const bool compares = importer.word == "kineto", logs = importer.word == "log";
    CLI::App* kind =
        command->add_subcommand(std::string(importer.word), fmt::format("{}: {}", importer.becomes, importer.reads));
    kind->add_option("FILE", options->files, std::string(importer.reads))->required()->expected(logs ? -1 : 1);
    add_text(*kind, "-o,--output", options->output, "FILE",
             fmt::format("file to write {} to (default: standard output)", importer.becomes));
    add_overrides(*kind, options->input.overrides);
    if (compares) {
      add_text(*kind, "--scenario", options->input.scenario, "SCENARIO",
               "scenario of the profile, for comparison with its prediction");
      add_fidelity(*kind, options->input.fidelity);
    }
    if (logs) {
      add_text(*kind, "--base", options->input.scenario, "SCENARIO",
               "what was trained, in place of the arguments at the logs' heads");
      add_text(*kind, "--write-scenario", options->scenario_output, "FILE.yaml",
               "where the scenario of the first log's arguments goes");
    }
    kind->callback([options, &importer, logs, &status] {
      const std::string text = logs ? imported_logs(options->files, options->input, options->scenario_output)
                                    : importer.read(input_of(options->files.front(), options->input));
      write_or_print(options->output, text);
      status = ExitStatus::success;
    });
  }
}

}  // namespace foretrain

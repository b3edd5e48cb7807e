#include "model/base/error.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/measured/text_fit.hpp"
#include "validate/fit/fit.hpp"

namespace foretrain {

namespace {

struct FitOptions {
  std::vector<std::string> tables;
  std::vector<std::string> constants;
  std::vector<std::string> left_out;
  bool leave_one_out = false;
  int budget = 4000;
};

ExitStatus run(const FitOptions& options) {
  std::vector<FitRow> rows;
  for (const std::string& table : options.tables) {
    for (FitRow& row : fit_rows(read_cases(table))) rows.push_back(std::move(row));
  }
  if (rows.empty()) throw UsageError("--cases: the tables have no rows");
  const Calibration start = load_default_calibration();
  const std::vector<std::string> constants =
      options.constants.empty() ? default_fit_constants(rows) : options.constants;

  const std::vector<std::string> gpus = options.leave_one_out ? gpus_of(rows) : options.left_out;
  std::vector<LeftOut> left_out;
  for (const std::string& gpu : gpus) left_out.push_back(leave_out(rows, gpu, constants, start, options.budget));
  if (left_out.empty()) {
    const FitResult result = fit(rows, constants, start, options.budget);
    print(fit_json(&result, {}) + "\n");
  } else {
    print(fit_json(nullptr, left_out) + "\n");
  }
  return ExitStatus::success;
}

}  // namespace

void add_fit(CLI::App& app, ExitStatus& status) {
  auto [command, options] =
      add_command<FitOptions>(app, "fit", "Fit constants of the operator models to measured operators", status, run);
  add_text(command, "--cases", options.tables, "CASES.csv", "tables of operators with the column measured.time")
      ->required();
  command
      .add_option("--constants", options.constants,
                  "constants to fit (default: those of GEMMs, and energies of the tables' GPUs)")
      ->delimiter(',')
      ->type_name("NAME[,NAME]");
  auto* left = add_text(command, "--leave-out", options.left_out, "GPU",
                        "cross-validate: fit without this GPU's rows and predict them (repeatable; catalogue name)");
  command.add_flag("--leave-one-out", options.leave_one_out, "cross-validate each GPU of the tables in turn")
      ->excludes(left);
  add_number(command, "--budget", options.budget, 1, 1'000'000, "maximum number of evaluations");
}

}  // namespace foretrain

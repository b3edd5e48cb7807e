#include <fmt/format.h>

#include <filesystem>

#include "model/base/error.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/vary.hpp"
#include "reports/explain/comparison.hpp"
#include "sim/simulate.hpp"

namespace foretrain {

namespace {

constexpr int most = 16;

struct CompareOptions {
  std::vector<std::string> files, variations, overrides;
  Fidelity fidelity = Fidelity::flows;
  int jobs = 1;
  bool json = false;
};

/// A row for each file and combination; one of several combinations is named after what tells it from the others.
std::vector<Case> rows_of(const CompareOptions& options) {
  const std::vector<Variation> variations = parse_variations(options.variations);
  std::vector<Case> rows;
  for (const std::string& file : options.files) {
    const Combinations all(file, options.overrides, variations);
    for (const std::size_t number : all.distinct()) {
      rows.push_back(all.at(number));
      rows.back().name = all.words(number);
    }
  }
  if (rows.size() < 2 || rows.size() > most) {
    throw UsageError(fmt::format("compare: {} given; name 2 to {} scenarios, or one and --vary KEY=V1,V2",
                                 counted(rows.size(), "scenario"), most));
  }
  return rows;
}

Result predict_whole(const Case& row, const CompareOptions& options) {
  const std::string file = std::filesystem::path(row.base).stem().string();
  Scenario scenario = planned_scenario(document_of(row), file, options.fidelity);
  const bool several = options.files.size() > 1;
  if (!row.name.empty()) scenario.name = several ? scenario.name + ", " + row.name : row.name;
  return predict(scenario, options.fidelity);
}

ExitStatus run(const CompareOptions& options) {
  const std::vector<Case> rows = rows_of(options);
  std::vector<Outcome> outcomes =
      predict_with_progress(rows.size(), options.jobs, [&](std::size_t i) { return predict_whole(rows[i], options); });
  ExitStatus status = ExitStatus::success;
  const std::vector<Result> results = results_of(std::move(outcomes), status);
  if (status != ExitStatus::success) return status;
  options.json ? print(comparison_json(results) + "\n") : print_page(comparison_text(results));
  return ExitStatus::success;
}

}  // namespace

void add_compare(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<CompareOptions>(
      app, "compare", "Compare scenarios side by side, and show why they differ", status, run);
  command.add_option("FILE", options.files, "scenario files or names; the first is the reference")
      ->required()
      ->expected(-1);
  add_variations(command, options.variations,
                 "compare all combinations of key values, as in `foretrain sweep`: 'plan.sync=ring,servers(8)'");
  add_fidelity(command, options.fidelity);
  add_overrides(command, options.overrides);
  add_jobs(command, options.jobs);
  command.add_flag("--json", options.json, "print JSON");
}

}  // namespace foretrain

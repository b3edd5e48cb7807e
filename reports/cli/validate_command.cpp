#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/load/cases.hpp"
#include "reports/cli/anchors.hpp"
#include "reports/cli/case_tables.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/measured/accuracy.hpp"
#include "reports/measured/measured.hpp"
#include "reports/result/json.hpp"
#include "reports/result/text.hpp"

namespace foretrain {

namespace {

struct ValidateOptions {
  std::vector<std::string> tables;
  std::vector<std::string> bars;
  std::vector<std::string> pairs;
  std::string picture;
  std::vector<std::string> settings;  ///< of every case
  Fidelity fidelity = Fidelity::flows;
  int anchor = 0;
  int jobs = 1;
  bool json = false;
  bool groups = false;
  bool verbose = false;
};

/// The largest MAPE that passes, for the groups whose name begins with `group`.
struct Bar {
  std::string group;
  double mape = 0.0;
};

/// "vtrain=15" or, for every group, "15"; a "%" may follow the number.
Bar parse_bar(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  std::string_view number = trim(std::string_view(text).substr(equals == std::string::npos ? 0 : equals + 1));
  if (number.ends_with('%')) number.remove_suffix(1);
  try {
    return {equals == std::string::npos ? "" : text.substr(0, equals), parse_number(trim(number)) / 100.0};
  } catch (const UnitError& error) {
    throw UsageError(fmt::format("--bar: {}: {}; write GROUP=PERCENT or PERCENT", text, error.got()));
  }
}

PairReport pairs_of(const std::vector<Case>& cases, const std::vector<Outcome>& outcomes,
                    std::vector<std::string> names) {
  std::vector<Rival> rivals;
  std::vector<FailedCase> said_elsewhere;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (const Comparison& c : compare_case(cases[i], outcomes[i], said_elsewhere)) rivals.push_back({&cases[i], c});
  }
  std::ranges::transform(names, names.begin(), keys::current_name);
  return compare_pairs(rivals, names);
}

AccuracyReport report_on(const std::vector<Case>& cases, std::vector<Outcome> outcomes,
                         const ValidateOptions& options) {
  std::optional<PairReport> pairs;
  if (!options.pairs.empty()) pairs = pairs_of(cases, outcomes, options.pairs);
  Anchors anchors;
  if (options.anchor > 0) anchors = anchors_of(cases, outcomes, options.anchor);
  anchor_outcomes(cases, anchors, options.fidelity, options.jobs, outcomes);
  std::vector<Comparison> comparisons;
  std::vector<FailedCase> failed;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const bool anchored = anchors.of(cases, i) != nullptr;
    for (Comparison& comparison : compare_case(cases[i], outcomes[i], failed)) {
      comparison.anchored = anchored;
      const bool spent = anchors.runs.contains(i) && !is_memory(comparison.quantity);
      if (!spent) comparisons.push_back(std::move(comparison));
    }
  }
  AccuracyReport report = accuracy_report(comparisons, std::move(failed), options.anchor);
  report.anchored += static_cast<int>(anchors.runs.size());
  report.anchors = std::move(anchors.by_name);
  report.pairs = std::move(pairs);
  return report;
}

bool meets_bars(const AccuracyReport& report, const std::vector<Bar>& bars) {
  bool meets = true;
  for (const Bar& bar : bars) {
    bool found = false;
    for (const GroupAccuracy& group : report.groups) {
      if (!group.name.starts_with(bar.group)) continue;
      found = true;
      if (group.statistics.mape <= bar.mape) continue;
      meets = false;
      warn(fmt::format("{}: MAPE {:.1f} %, its bar is {:.1f} %", group.name, group.statistics.mape * 100.0,
                       bar.mape * 100.0));
    }
    if (!found) throw UsageError("--bar: no group's name begins with " + bar.group);
  }
  return meets;
}

ExitStatus run(const ValidateOptions& options) {
  std::vector<Bar> bars;
  for (const std::string& text : options.bars) bars.push_back(parse_bar(text));
  std::vector<Case> cases = read_tables(options.tables.empty() ? shipped_tables() : options.tables);
  cases = with_overrides(std::move(cases), options.settings);
  const AccuracyReport report = report_on(cases, predict_cases(cases, options.fidelity, options.jobs), options);
  if (!options.picture.empty() && !report.cases.empty()) write_picture(options.picture, to_figure(report));
  options.json ? print(to_json(report) + "\n")
               : print_page(to_text(report, {options.verbose, options.tables.empty() && !options.groups}));
  const bool passed = report.failed.empty() && meets_bars(report, bars);
  return passed ? ExitStatus::success : ExitStatus::prediction_failed;
}

}  // namespace

void add_validate(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<ValidateOptions>(
      app, "validate", "Compare predictions with measurements; print errors by group", status, run);
  add_text(command, "CASES.csv,--cases", options.tables, "",
           "tables with measured.* columns (default: all shipped tables)");
  add_number(command, "--anchor", options.anchor, 0, 1'000'000,
             "fit scale factors to the first N cases of each group (or name in column `anchor`), and exclude these "
             "from the errors");
  add_repeatable(command, "--bar", options.bars,
                 "fail if a group's MAPE exceeds this (repeatable; GROUP: start of a name)", "[GROUP=]PERCENT");
  command
      .add_option("--pairs", options.pairs,
                  "count pairs ranked correctly: cases that differ only in these keys, such as plan.sync")
      ->delimiter(',')
      ->type_name("KEY[,KEY]")
      ->allow_extra_args(false);
  add_calibration(command, options.settings);
  add_stack(command, options.settings);
  add_fidelity(command, options.fidelity);
  add_jobs(command, options.jobs);
  command.add_flag("--json", options.json, "print JSON");
  command.add_flag("--groups", options.groups, "list every group of the shipped tables");
  command.add_flag("--verbose", options.verbose, "list every case");
  add_picture(command, "-o,--output", options.picture, "draw predicted against measured values");
}

}  // namespace foretrain

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/case_tables.hpp"
#include "reports/cli/shared_reports.hpp"
#include "reports/cli/sweep_merge.hpp"
#include "reports/cli/sweep_table.hpp"
#include "reports/page/page.hpp"

namespace foretrain {

namespace {

struct ReportOptions {
  PlotOptions shared;
  std::string title;
  std::optional<Fidelity> what_ifs;
  bool plan = false;  ///< the best plans of each training
};

std::optional<ScalingPart> scaling_part(PlotOptions shared, const Scenario& scenario) {
  if (!std::holds_alternative<TrainWorkload>(scenario.workload)) return std::nullopt;
  const int own = scenario.cluster.gpus();
  if (shared.gpus.empty()) {
    for (const int n : {own / 8, own / 4, own / 2, own, own * 2, own * 4}) {
      if (n > 0) shared.gpus.push_back(n);
    }
  }
  shared.algorithms = {"auto", "ring", "parameter_server"};
  ScalingPart part;
  part.fidelity = shared.fidelity;
  part.usd_per_gpu_hour = scenario.cluster.usd_per_gpu_hour;
  std::set<std::string> reported;
  part.chart = predict_scaling(shared, [&](const std::string& why) {
                 if (reported.insert(why).second) part.not_predicted.push_back(why);
               }).front();
  return part;
}

/// Nothing where the scenario has no operators.
std::optional<RooflineFigure> roofline_of(const Scenario& scenario) {
  try {
    return roofline_figure({scenario});
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

ScenarioPart scenario_part(const std::string& file, const ReportOptions& options) {
  PlotOptions shared = options.shared;
  shared.files = {file};
  shared.overrides = planned_overrides(file, shared.overrides, shared.fidelity);
  const YamlNode document = scenario_document(file, shared.overrides);
  const Scenario scenario = read_scenario(document, std::filesystem::path(file).stem().string());
  PlotOptions varied = shared;
  varied.fidelity = options.what_ifs ? *options.what_ifs : what_if_fidelity(scenario, shared.fidelity);
  ScenarioPart part{.explanation = explanation_of(shared, varied.fidelity), .gpus = scenario.cluster.gpus()};
  if (!shared.beside.empty()) {
    std::ranges::move(measured_entries(shared.beside), std::back_inserter(part.explanation.result.timeline));
  }
  if (std::holds_alternative<TrainWorkload>(scenario.workload)) part.memory = memory_report(file, shared.overrides);
  part.scaling = scaling_part(varied, scenario);
  if (options.plan && std::holds_alternative<TrainWorkload>(scenario.workload)) part.plans = plan_report(varied);
  part.roofline = roofline_of(scenario);
  part.links = link_uses(scenario, shared.fidelity);
  return part;
}

AccuracyReport accuracy_of(const std::string& file, const PlotOptions& shared) {
  const std::vector<Case> cases = read_cases(file);
  const std::vector<Outcome> outcomes = predict_cases(cases, shared.fidelity, shared.jobs);
  std::vector<Comparison> comparisons;
  std::vector<FailedCase> failed;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::ranges::move(compare_case(cases[i], outcomes[i], failed), std::back_inserter(comparisons));
  }
  return accuracy_report(comparisons, std::move(failed), 0);
}

CsvTable rows_of(const std::string& file) {
  if (!std::filesystem::exists(file)) throw UsageError(file + ": there is no such file");
  const ScratchFolder folder;
  const std::string table = folder.path() + "/rows.csv";
  SweepStore store(file);
  write_table(store, {}, table);
  return parse_csv(read_text_file(table), file);
}

void add_table(const std::string& file, const CsvTable& table, const PlotOptions& shared, Page& page) {
  const std::string name = std::filesystem::path(file).filename().string();
  const auto has = [&](std::string_view beginning) {
    return std::ranges::any_of(table.header, [&](const CsvCell& cell) { return cell.text.starts_with(beginning); });
  };
  if (!has("predicted.") && !has("measured.")) {
    throw UsageError(file + ": neither predicted.* columns, as `foretrain sweep` writes them, nor measured.* ones");
  }
  if (has("predicted.")) page.sweeps.emplace_back(name, table);
  if (has("measured.")) page.accuracy.emplace_back(name, accuracy_of(file, shared));
}

void add_input(const std::string& file, const ReportOptions& options, Page& page) {
  const std::string extension = std::filesystem::path(file).extension().string();
  if (extension == ".csv") {
    add_table(file, parse_csv(read_text_file(file), file), options.shared, page);
  } else if (is_database(file)) {
    add_table(file, rows_of(file), options.shared, page);
  } else if (extension == ".jsonl") {
    throw UsageError(file + ": a report reads sweeps as .csv or .sqlite");
  } else if (extension == ".json") {
    page.answers.emplace_back(std::filesystem::path(file).filename().string(), read_text_file(file));
  } else {
    page.scenarios.push_back(scenario_part(file, options));
  }
}

ExitStatus run(const ReportOptions& options) {
  if (!options.shared.output.ends_with(".html")) {
    throw UsageError("report: -o " + options.shared.output + ": a report is a page; name it .html");
  }
  Page page{.title = options.title, .program = "foretrain " FORETRAIN_VERSION};
  for (const std::string& file : options.shared.files) add_input(file, options, page);
  if (page.title.empty()) {
    page.title = page.scenarios.empty() ? std::filesystem::path(options.shared.file()).filename().string()
                                        : page.scenarios.front().explanation.result.scenario;
  }
  write_file(options.shared.output, to_html(page));
  return ExitStatus::success;
}

}  // namespace

void add_report(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<ReportOptions>(
      app, "report", "Write an HTML page of scenarios, sweeps, plans and measurements", status, run);
  command
      .add_option("FILE", options.shared.files,
                  "scenarios; tables of a sweep (.csv, .sqlite) or of measured cases (.csv); JSON results of predict, "
                  "explain, memory, plan, validate and diagnose")
      ->required();
  add_text(command, "-o,--output", options.shared.output, "REPORT.html", "the page")->required();
  add_text(command, "--title", options.title, "TEXT", "title of the page (default: the first scenario's name)");
  add_text(command, "--beside", options.shared.beside, "TRACE.json|TRACE.json.gz",
           "a measured step of torch.profiler, drawn below the predicted timeline");
  add_gpu_numbers(command, options.shared.gpus,
                  "GPU counts of the scaling chart (default: 1/8 to 4 times the scenario's)");
  command.add_flag("--plan", options.plan, "also search the best plans of each scenario, as `foretrain plan`");
  add_fidelity(command, options.shared.fidelity);
  add_what_if_fidelity(
      command, options.what_ifs,
      "fidelity of scaling, what-ifs and plans (default: as --fidelity; estimate above 10 million flows)");
  add_overrides(command, options.shared.overrides);
  add_jobs(command, options.shared.jobs);
}

}  // namespace foretrain

#include "reports/cli/learn_next.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "model/base/bytestream.hpp"
#include "model/base/error.hpp"
#include "model/base/format.hpp"
#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/memory/memory.hpp"
#include "model/planning/plan_search.hpp"
#include "model/scenario/load/load.hpp"
#include "model/scenario/plan/trainer_reader.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plan_uncertainty.hpp"
#include "reports/cli/shared_reports.hpp"
#include "reports/cli/workers.hpp"
#include "reports/explain/what_if.hpp"
#include "reports/print/number.hpp"
#include "reports/studies/next_runs.hpp"
#include "sim/simulate.hpp"
#include "validate/learn/stack_file.hpp"

namespace foretrain {

namespace {

/// Length of a measured run: its start, and some steps.
constexpr Seconds start_of_run(300.0);
constexpr double steps_of_run = 50.0;

/// A run that may be measured or chosen.
struct Candidate {
  std::string name;
  std::vector<std::string> overrides;  ///< of the scenario; none of a table's rows
  Scenario scenario;
  std::vector<std::uint64_t> parts;  ///< UncertainPlan::parts
  bool is_choice = true;
};

/// Features on which a stack's own error depends: how the model is divided, the pipeline, the passes, what these run
/// again, and the plan by itself.
std::vector<std::uint64_t> parts_of(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  return {hash_of(plan.tensor, plan.context, plan.expert), hash_of(plan.pipeline, plan.schedule, plan.interleave),
          hash_of(train.micro_batch), hash_of(train.recompute),
          hash_of(plan.tensor, plan.context, plan.expert, plan.pipeline, plan.schedule, plan.interleave,
                  train.micro_batch, train.recompute, plan.zero, plan.data)};
}

Candidate candidate_of(std::string name, std::vector<std::string> overrides, Scenario scenario) {
  std::vector<std::uint64_t> parts = parts_of(scenario);
  return {std::move(name), std::move(overrides), std::move(scenario), std::move(parts)};
}

std::vector<Candidate> rows_of(const NextOptions& options) {
  if (!options.overrides.empty() || !options.fixed.empty()) {
    throw UsageError(options.input + ": --set and --fix are of a scenario; a table's rows say what each is");
  }
  std::vector<Candidate> rows;
  for (const Case& row : with_overrides(read_cases(options.input), {stack_override(options.stack)})) {
    Scenario scenario = scenario_of(row);
    if (!std::holds_alternative<TrainWorkload>(scenario.workload)) {
      throw ScenarioError(row.where, "workload", "no training", "plans of trainings");
    }
    rows.push_back(candidate_of(row.name, {}, std::move(scenario)));
  }
  return rows;
}

/// The plan on a half, a quarter, … of the machines, by fewer replicas with as many samples each.
void add_smaller(const NextOptions& options, const std::vector<std::string>& overrides, const Candidate& whole,
                 std::vector<Candidate>& candidates) {
  const Scenario& scenario = whole.scenario;
  const std::int64_t batch = std::get<TrainWorkload>(scenario.workload).global_batch;
  for (int part = 2; scenario.cluster.nodes % part == 0 && scenario.plan.data % part == 0 && batch % part == 0;
       part *= 2) {
    std::vector<std::string> own = whole.overrides;
    own.push_back(fmt::format("cluster.nodes={}", scenario.cluster.nodes / part));
    own.push_back(fmt::format("plan.data={}", scenario.plan.data / part));
    own.push_back(fmt::format("workload.train.global_batch={}", batch / part));
    std::vector<std::string> all = overrides;
    all.insert(all.end(), own.begin(), own.end());
    try {
      Candidate& smaller = candidates.emplace_back(candidate_of(whole.name, own, load_scenario(options.input, all)));
      smaller.is_choice = false;
      smaller.parts.push_back(hash_of(part));
    } catch (const ScenarioError&) {
      return;  // impossible on the other machines
    }
  }
}

/// Plans of one kind, which differ in how gradients are synchronised alone, are no rivals: the best of each.
std::vector<PlanCandidate> best_of_kinds(const std::vector<PlanCandidate>& plans) {
  constexpr std::size_t most = 32;
  std::set<PlanKind> kinds;
  std::vector<PlanCandidate> best;
  for (const PlanCandidate& plan : plans) {
    if (best.size() < most && kinds.insert(kind_of(plan.point)).second) best.push_back(plan);
  }
  return best;
}

std::vector<Candidate> plans_of(const NextOptions& options, const RunTasks& run_tasks) {
  constexpr std::size_t kept = 200;
  std::vector<std::string> overrides = options.overrides;
  overrides.push_back(stack_override(options.stack));
  const std::vector<PlanSpace> spaces = {
      PlanSpace(scenario_document(options.input, overrides), options.input, plan_dimensions(options.fixed))};
  const PlanSearch search = search_plans(spaces, {PlanObjective{}}, kept, run_tasks);
  std::vector<Candidate> candidates;
  for (const PlanCandidate& plan : best_of_kinds(search.best)) {
    candidates.push_back(
        candidate_of(describe(plan.point), spaces.front().overrides(plan.point), spaces.front().read(plan.point)));
  }
  const std::vector<Candidate> whole = candidates;
  for (const Candidate& one : whole) add_smaller(options, overrides, one, candidates);
  return candidates;
}

class Unknowns {
 public:
  explicit Unknowns(std::vector<LikelySetting> settings) : settings_(std::move(settings)) {}

  [[nodiscard]] std::vector<UncertainResource> of(const Scenario& scenario) const {
    std::vector<UncertainResource> all;
    for (const LikelySetting& setting : settings_) all.push_back(unknown_of(scenario, setting));
    all.push_back(network_of(scenario));
    for (UncertainResource& one : uncertain_resources(scenario, 0.0)) {
      if (!one.taught_by_runs) all.push_back(std::move(one));
    }
    return all;
  }

 private:
  [[nodiscard]] static UncertainResource unknown_of(const Scenario& scenario, const LikelySetting& setting) {
    UncertainResource one;
    one.name = setting.parameter.meaning;
    if (!setting.parameter.moves(scenario.cluster.nodes, scenario.plan.pipeline > 1)) return one;
    const bool more_is_faster = setting.parameter.scale == StackParameter::Scale::share;
    one.faster = with_setting(scenario, setting.parameter, more_is_faster ? setting.high : setting.low);
    one.slower = with_setting(scenario, setting.parameter, more_is_faster ? setting.low : setting.high);
    return one;
  }
  /// On a number of machines of which no run says anything, as little is known as before any.
  [[nodiscard]] UncertainResource network_of(const Scenario& scenario) const {
    const int nodes = scenario.cluster.nodes;
    const auto is_known = [&](const LikelySetting& setting) { return setting.parameter.nodes == nodes; };
    if (nodes < 2 || std::ranges::any_of(settings_, is_known)) return {};
    LikelySetting network{stack_parameters({.nodes = {nodes}}).back()};
    const double share = scenario.cluster.network.share_left(nodes);
    network.low = share * std::exp(-network.parameter.spread);
    network.high = std::min(share * std::exp(network.parameter.spread), 1.0);
    return unknown_of(scenario, network);
  }

  std::vector<LikelySetting> settings_;
};

/// The budget in GPU-hours. Throws UsageError.
double gpu_hours_of(const std::string& budget) {
  if (budget.empty()) return std::numeric_limits<double>::infinity();
  try {
    const auto [number, unit] = split_number_and_unit(budget);
    if (number > 0.0 && (unit == "GPU-hours" || unit == "GPU-hour" || unit == "GPU hours")) return number;
  } catch (const UnitError&) {
  }
  throw UsageError(fmt::format("--budget {}: not a number of GPU-hours; write for example '64 GPU-hours'", budget));
}

struct Study {
  std::vector<Candidate> candidates;
  std::vector<PossibleRun> runs;  ///< of each candidate
  std::ptrdiff_t choices = 0;
  NextRuns next;
};

/// The step in seconds and the share of the memory that is taken, of the GPU and where it is offloaded to the host's.
/// The effects of what is not known.
std::string answer_of(const Scenario& scenario, const Unknowns& unknowns) {
  const Result result = predict(scenario, Fidelity::estimate, Detail::numbers);
  const MemoryFootprint& memory = result.train()->memory;
  const double filled = memory.fits_host() ? memory.total() / memory.capacity : 2.0;
  Bytestream bytes;
  bytes.put(std::vector{result.time().value(), filled});
  bytes.put(effects_of(result.time(), unknowns.of(scenario)));
  return std::move(bytes).text();
}

/// Runs that do not fit are neither chosen nor measured.
PossibleRun possible_run(const Candidate& candidate, const std::string& answer, const NextOptions& options) {
  Bytestream bytes(answer);
  const std::vector<double> figures = bytes.take<double>();
  const Seconds step(figures[0]);
  const double filled = figures[1];
  const bool fits = filled <= 1.0;
  const std::vector<Effect> effects = bytes.take<Effect>();
  const Cluster& cluster = candidate.scenario.cluster;
  return {.plan = {step.value(), effects, candidate.parts, 0, filled},
          .is_choice = candidate.is_choice && fits,
          .is_measurable = fits && (options.nodes == 0 || cluster.nodes <= options.nodes),
          .gpu_hours = cluster.gpus() * (start_of_run + step * steps_of_run).value() / 3600.0};
}

Study study_of(const NextOptions& options) {
  const RunTasks run_tasks = tasks_shared_out(options.jobs);
  const double gpu_hours = gpu_hours_of(options.budget);
  const MappingReader stack = named_trainer(Field(yaml_scalar(options.stack, {}), "--next"));
  Study study;
  study.candidates = options.input.ends_with(".csv") ? rows_of(options) : plans_of(options, run_tasks);
  if (study.candidates.empty()) throw UsageError(options.input + ": no plan to choose");
  const Scenario& usual = study.candidates.front().scenario;
  const Unknowns unknowns(likely_settings(stack, usual));
  const RunErrors errors{std::max(plan_spread, std::log1p(usual.learned->spread) / ninth),
                         spread_of_shortfall(usual.learned->memory_shortfall), measuring_noise};
  const std::vector<std::string> answers = run_tasks(
      study.candidates.size(), [&](std::size_t i) { return answer_of(study.candidates[i].scenario, unknowns); });
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].empty()) throw UsageError("interrupted");
    study.runs.push_back(possible_run(study.candidates[i], answers[i], options));
  }
  study.choices = std::ranges::count_if(study.runs, &PossibleRun::is_choice);
  if (study.choices < 2) {
    throw UsageError(fmt::format("{}: {} of {} plans fit into memory; two are needed for a choice", options.input,
                                 study.choices, study.candidates.size()));
  }
  study.next = next_runs(study.runs, errors, at_index(options.runs), gpu_hours);
  return study;
}

std::string machines_text(const Cluster& cluster) { return counted(cluster.nodes, "machine"); }

std::string command_of(const NextOptions& options, const Candidate& candidate) {
  if (candidate.overrides.empty()) return fmt::format("a row of {}", options.input);
  std::string command =
      fmt::format("foretrain predict {} --stack {}", shell_word(options.input), shell_word(options.stack));
  for (const std::vector<std::string>& list : {options.overrides, candidate.overrides}) {
    for (const std::string& one : list) command += fmt::format(" \\\n      --set {}", shell_quoted(one));
  }
  return command;
}

std::string to_text(const Study& study, const NextOptions& options) {
  std::string text = fmt::format("Runs to measure before you choose a plan for {}\n\n", options.input);
  text += fmt::format("  Expected regret: {:.2g} % over {} plans, by the uncertainty of {}\n",
                      100.0 * study.next.regret, study.choices, options.stack);
  if (study.next.runs.empty()) {
    return text + "  No run reduces it noticeably: choose a plan, and learn from its run.\n";
  }
  int number = 0;
  for (const NextRun& next : study.next.runs) {
    const Candidate& candidate = study.candidates[next.run];
    const PossibleRun& run = study.runs[next.run];
    text +=
        fmt::format("\n  {}. {} on {}: step {}, {:.3g} GPU-hours; regret then {:.2g} %\n    {}\n", ++number,
                    candidate.name, machines_text(candidate.scenario.cluster), format_seconds(Seconds(run.plan.value)),
                    run.gpu_hours, 100.0 * next.regret, command_of(options, candidate));
  }
  text += fmt::format(
      "\n  A run: {} to start, then {:.0f} steps. Add its row to the table for `foretrain learn`, then repeat.\n",
      format_seconds(start_of_run), steps_of_run);
  return text;
}

std::string to_json(const Study& study, const NextOptions& options) {
  nlohmann::ordered_json json;
  json["input"] = options.input;
  json["stack"] = options.stack;
  json["choices"] = study.choices;
  json["regret"] = study.next.regret;
  json["runs"] = nlohmann::ordered_json::array();
  for (const NextRun& next : study.next.runs) {
    const Candidate& candidate = study.candidates[next.run];
    json["runs"].push_back({{"name", candidate.name},
                            {"nodes", candidate.scenario.cluster.nodes},
                            {"overrides", candidate.overrides},
                            {"step_time_s", study.runs[next.run].plan.value},
                            {"gpu_hours", study.runs[next.run].gpu_hours},
                            {"regret", next.regret}});
  }
  return json.dump(2) + "\n";
}

}  // namespace

ExitStatus run_next(const NextOptions& options) {
  const Study study = study_of(options);
  options.json ? print(to_json(study, options)) : print_page(to_text(study, options));
  return ExitStatus::success;
}

}  // namespace foretrain

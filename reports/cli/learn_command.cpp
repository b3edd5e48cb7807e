#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <span>

#include "model/base/bytestream.hpp"
#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/statistics.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/learn_next.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plan_uncertainty.hpp"
#include "reports/import/training_log.hpp"
#include "reports/measured/measured.hpp"
#include "reports/print/number.hpp"
#include "sim/simulate.hpp"
#include "validate/learn/stack_file.hpp"

namespace foretrain {

namespace {

struct LearnOptions {
  std::vector<std::string> inputs;  ///< a table, or logs, traces and folders of these
  std::string output, base, scenario;
  int jobs = 1;
  bool json = false;
  NextOptions next;
};

struct UsableRun {
  Case row;
  Scenario scenario;
};

/// Of a rate its inverse; zero where no time is measured.
double measured_time(const Case& row) {
  for (const Measurement& measured : row.measured) {
    if (measured.quantity == MeasuredQuantity::memory_per_gpu) continue;
    return is_rate(std::string(name(measured.quantity))) ? 1.0 / measured.value : measured.value;
  }
  return 0.0;
}

/// Throws ScenarioError where an earlier row says something else of the same run.
void check_against(std::map<std::string, Case>& earlier, const Case& row) {
  constexpr double most = 1.25;
  std::string cells = row.base;
  for (const Override& cell : row.overrides) cells += '\n' + cell.key + '=' + cell.value;
  const auto [known, is_new] = earlier.try_emplace(cells, row);
  if (is_new) return;
  const double other = measured_time(known->second) / measured_time(row);
  if (other < most && other > 1.0 / most) return;
  throw ScenarioError(row.where, "measured",
                      fmt::format("{:.3g} times what {} measures of the same run", 1.0 / other, known->second.name),
                      "one of the two");
}

RunResidual residual_of(const UsableRun& run, const std::vector<StackParameter>& parameters,
                        const StackSetting& setting) {
  const Result result = predict(of_stack(run.scenario, parameters, setting), Fidelity::estimate);
  RunResidual residual;
  if (const TrainResult* train = result.train()) residual.filled = train->memory.total() / train->memory.capacity;
  for (const Comparison& one : compare(run.row, result)) {
    const bool memory = one.quantity == name(MeasuredQuantity::memory_per_gpu);
    (memory ? residual.memory : residual.time) = std::log1p(one.error());
  }
  return residual;
}

bool is_table(const std::string& input) {
  if (!std::filesystem::exists(input)) return true;  // a name, or an error to tell
  if (!input.ends_with(".csv")) return false;
  const std::string text = read_imported_file(input);
  const std::string header = text.substr(0, text.find('\n'));
  return header.find("case") != std::string::npos || header.find("measured.") != std::string::npos;
}

/// Files of a folder in the order of their names, without scenarios.
std::vector<std::string> logs_of(const std::vector<std::string>& inputs) {
  std::vector<std::string> files;
  for (const std::string& input : inputs) {
    if (!std::filesystem::is_directory(input)) {
      files.push_back(input);
      continue;
    }
    std::set<std::string> inside;
    for (const auto& entry : std::filesystem::directory_iterator(input)) {
      if (entry.is_regular_file() && entry.path().extension() != ".yaml") inside.insert(entry.path().string());
    }
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

/// The arguments at a log's head as a scenario; none where they do not say which model, and something else does.
std::string described_at_head(const ImportInput& input, bool described_elsewhere) {
  if (!described_elsewhere) return scenario_at_head(input);
  try {
    std::string scenario = scenario_at_head(input);
    return assumes(scenario, "workload.train.model") ? "" : scenario;
  } catch (const ScenarioError&) {
    return "";
  }
}

/// The scenario of a log: NAME.yaml beside NAME.log, else the arguments at the log's head, else --scenario.
Case row_of_log(const std::string& file, const LearnOptions& options, std::vector<LoggedRun>& logged) {
  ImportInput input;
  input.file = file;
  input.text = read_imported_file(file);
  input.overrides = options.next.overrides;
  LoggedRun run = read_log_or_trace(input);
  const std::string beside = std::filesystem::absolute(file).replace_extension(".yaml").string();
  std::string base = std::filesystem::exists(beside) ? beside : "";
  if (base.empty()) run.scenario = described_at_head(input, !options.scenario.empty());
  if (base.empty() && run.scenario.empty()) base = options.scenario;
  if (base.empty() && run.scenario.empty()) {
    throw ScenarioError({file, 0, 0}, "", "no arguments at the log's head", beside + ", or --scenario SCENARIO");
  }
  Case row = read_cases_text(log_table(std::span(&run, 1), base, input.overrides), file).front();
  logged.push_back(std::move(run));
  return row;
}

using LeftOut = std::vector<std::pair<std::string, std::string>>;
constexpr std::size_t most_told = 10;

void leave_out(std::string name, const ScenarioError& error, LeftOut& failed) {
  if (failed.size() < most_told) warn(fmt::format("{} is left out: {}", name, error.what()));
  failed.emplace_back(std::move(name), error.what());
}

std::vector<Case> rows_of(const LearnOptions& options, LeftOut& failed) {
  if (options.inputs.size() == 1 && is_table(options.inputs[0])) {
    return with_overrides(read_cases(options.inputs[0]), options.next.overrides);
  }
  std::vector<Case> rows;
  std::vector<LoggedRun> logged;
  for (const std::string& file : logs_of(options.inputs)) {
    try {
      rows.push_back(row_of_log(file, options, logged));
    } catch (const ScenarioError& error) {
      leave_out(std::filesystem::path(file).filename().string(), error, failed);
    }
  }
  if (const std::string remark = assumed_machine(logged); !remark.empty()) warn(remark);
  return rows;
}

/// Runs that can be predicted; of the others, why not, also in `failed`. Workers begin with what this process knows: it
/// predicts each once.
std::vector<UsableRun> runs_of(const LearnOptions& options, LeftOut& failed) {
  std::vector<UsableRun> runs;
  std::map<std::string, Case> earlier;
  for (Case& row : rows_of(options, failed)) {
    const std::string name = row.name;
    try {
      if (!options.base.empty()) {
        row.overrides.push_back({"plan.framework", options.base, {"--base " + options.base, 0, 0}});
      }
      Scenario scenario = scenario_of(row);
      if (!std::holds_alternative<TrainWorkload>(scenario.workload)) {
        throw ScenarioError(row.where, "workload", "no training", "steps of trainings");
      }
      check_against(earlier, row);
      UsableRun run{std::move(row), std::move(scenario)};
      try {
        residual_of(run, {}, {});
      } catch (const ImpossiblePlan& error) {
        throw ScenarioError(run.row.where, "plan", error.what(), "a plan that can run");
      } catch (const UsageError& error) {
        throw ScenarioError(run.row.where, "measured", error.what(), "a step's time or a rate");
      }
      runs.push_back(std::move(run));
    } catch (const ScenarioError& error) {
      leave_out(name, error, failed);
    }
  }
  return runs;
}

/// Of half of the runs that were left out, or more, the step is predicted wrong by more than a factor of two.
void warn_of_misfit(const LearnedStack& stack) {
  constexpr double most = 2.0;
  std::vector<double> errors;
  for (const LearnedCase& one : stack.cases) {
    const std::optional<double>& time = one.left_out.time ? one.left_out.time : one.fitted.time;
    if (time) errors.push_back(std::abs(*time));
  }
  if (errors.empty()) return;
  const double times = std::exp(median(errors));
  if (times <= most) return;
  warn(fmt::format(
      "the runs do not fit the model or the machine that their scenarios state: half of them are predicted wrong by a "
      "factor of {:.3g} or more after learning; the profile is of no use",
      times));
}

/// The settings that a plan does not choose: rows with equal text are alternatives for the same task and machines.
std::string task_of(const Case& row) {
  std::string task = row.base;
  if (!row.measured.empty()) task += ' ' + std::string(name(row.measured.front().quantity));
  for (const Override& cell : row.overrides) {
    const bool chosen = (cell.key.starts_with("plan") && keys::current_name(cell.key) != "plan.framework") ||
                        cell.key == "workload.train.micro_batch" || cell.key == "workload.train.recompute";
    if (!chosen) task += '\n' + cell.key + '=' + cell.value;
  }
  return task;
}

ExitStatus run_learning(const LearnOptions& options) {
  LearnedFrom from{std::filesystem::path(options.inputs[0]).filename().string(), options.base, {}, {}, {}};
  const std::vector<UsableRun> runs = runs_of(options, from.failed);
  if (from.failed.size() > most_told) warn(fmt::format("{} more are left out", from.failed.size() - most_told));
  std::set<int> sizes;
  RunsAtHand at_hand;
  std::vector<LearnedRun> learned;
  std::map<std::string, int> tasks;
  for (const UsableRun& one : runs) {
    from.names.push_back(one.row.name);
    from.nodes.push_back(one.scenario.cluster.nodes);
    sizes.insert(one.scenario.cluster.nodes);
    const Plan& plan = one.scenario.plan;
    const std::array of_plan = {plan.data, plan.tensor, plan.pipeline};
    std::ranges::transform(from.groups, of_plan, from.groups.begin(), std::ranges::max);
    const bool pipelined = plan.pipeline > 1;
    at_hand.pipelined = at_hand.pipelined || pipelined;
    const int task = tasks.try_emplace(task_of(one.row), static_cast<int>(tasks.size())).first->second;
    learned.push_back({one.scenario.cluster.nodes, pipelined, task, measured_time(one.row)});
    for (const Measurement& measured : one.row.measured) {
      at_hand.memory = at_hand.memory || measured.quantity == MeasuredQuantity::memory_per_gpu;
    }
  }
  constexpr std::size_t fewest = 5;
  if (runs.size() < fewest) {
    const std::string why =
        from.failed.empty() ? "" : fmt::format("; {} is left out: {}", from.failed[0].first, from.failed[0].second);
    throw UsageError(fmt::format("{}: {}; at least {} are needed{}", options.inputs[0],
                                 counted(std::ssize(runs), "usable training run"), fewest, why));
  }
  if (from.base.empty()) from.base = runs.front().scenario.trainer;
  at_hand.nodes.assign(sizes.begin(), sizes.end());
  at_hand.usual = &runs.front().scenario;
  const std::vector<StackParameter> parameters = stack_parameters(at_hand);
  const RunTasks run_tasks = tasks_shared_out(options.jobs);
  const PredictRuns predict = [&](const std::vector<RunAt>& asked) {
    const std::vector<std::string> answers = run_tasks(asked.size(), [&](std::size_t i) {
      Bytestream bytes;
      bytes.put(std::vector{residual_of(runs[asked[i].run], parameters, asked[i].setting)});
      return std::move(bytes).text();
    });
    std::vector<RunResidual> residuals;
    for (const std::string& answer : answers) residuals.push_back(Bytestream(answer).take<RunResidual>().front());
    return residuals;
  };
  const LearnedStack stack = learn_stack(parameters, learned, predict);
  warn_of_misfit(stack);
  if (!options.output.empty()) write_file(options.output, stack_file(stack, from));
  options.json ? print(to_json(stack, from)) : print_page(to_text(stack, from));
  return ExitStatus::success;
}

ExitStatus run(const LearnOptions& options) {
  if (options.next.stack.empty()) {
    if (options.output.empty() && !options.json) throw CLI::RequiredError("--output");
    return run_learning(options);
  }
  NextOptions next = options.next;
  next.input = options.inputs.front();
  next.jobs = options.jobs;
  next.json = options.json;
  return run_next(next);
}

void add_next(CLI::App& command, CLI::Option& output, NextOptions& options) {
  CLI::Option* next = add_text(command, "--next", options.stack, "PROFILE.yaml",
                               "name the runs to measure next, before you choose a plan with this profile")
                          ->excludes(&output);
  add_text(command, "--budget", options.budget, "GPU-HOURS",
           "budget of these runs: '64 GPU-hours' (default: unlimited)")
      ->needs(next);
  add_number(command, "--nodes", options.nodes, 1, 1'000'000,
             "nodes available for these runs (default: the scenario's)")
      ->needs(next);
  add_number(command, "--runs", options.runs, 1, 20, "number of runs to name (default: 3)")->needs(next);
  add_text(command, "--fix", options.fixed, "KEY", "keys that keep the scenario's value: tensor, schedule, …")
      ->delimiter(',')
      ->needs(next);
  add_repeatable(command, "--set", options.overrides, "override a scenario key: cluster.nodes=2, …", "KEY=VALUE");
}

}  // namespace

void add_learn(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<LearnOptions>(
      app, "learn", "Learn a settings profile (a framework file) from measured steps", status, run);
  command
      .add_option(
          "INPUT", options.inputs,
          "a table of measured steps, as for `validate --cases`; or training logs, traces of torch.profiler and "
          "folders of these; with --next, a scenario or a table of plans")
      ->required()
      ->type_name("RUNS.csv|LOG|FOLDER|SCENARIO");
  add_text(command, "--scenario", options.scenario, "SCENARIO",
           "scenario of logs without arguments at their head and without a NAME.yaml");
  CLI::Option* output =
      add_text(command, "-o,--output", options.output, "PROFILE.yaml",
               "write the settings profile, for plan.framework and --stack (required without --next or --json)");
  add_text(command, "--base", options.base, "FRAMEWORK",
           "framework whose settings apply where the runs determine none (default: each run's own)");
  add_next(command, *output, options.next);
  command.add_flag("--json", options.json, "print JSON with the settings profile; -o is then optional");
  add_jobs(command, options.jobs);
}

}  // namespace foretrain

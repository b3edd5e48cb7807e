#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/text.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/measured/measured.hpp"
#include "sim/simulate.hpp"
#include "validate/learn/stack_file.hpp"

namespace foretrain {

namespace {

struct LearnOptions {
  std::string table, output, base;
  int jobs = 1;
};

struct Run {
  Case row;
  Scenario scenario;
};

/// Runs that can be predicted; of the others, why not.
std::vector<Run> runs_of(const LearnOptions& options) {
  std::vector<Run> runs;
  for (Case& row : read_cases(options.table)) {
    try {
      if (!options.base.empty()) {
        row.overrides.push_back({"plan.trainer", options.base, {"--base " + options.base, 0, 0}});
      }
      Scenario scenario = scenario_of(row);
      if (!std::holds_alternative<TrainWorkload>(scenario.workload)) {
        throw ScenarioError(row.where, "workload", "no training", "steps of trainings");
      }
      runs.push_back({std::move(row), std::move(scenario)});
    } catch (const ScenarioError& error) {
      warn(fmt::format("{} is left out: {}", row.name, error.what()));
    }
  }
  return runs;
}

RunResidual residual_of(const Run& run, const std::vector<StackParameter>& parameters, const StackSetting& setting) {
  const Result result = predict(of_stack(run.scenario, parameters, setting), Fidelity::estimate);
  RunResidual residual;
  if (const TrainResult* train = result.train()) residual.filled = train->memory.total() / train->memory.capacity;
  for (const Comparison& one : compare(run.row, result)) {
    const bool memory = one.quantity == name(MeasuredQuantity::memory_per_gpu);
    (memory ? residual.memory : residual.time) = std::log1p(one.error());
  }
  return residual;
}

/// What a plan does not choose: rows of which it is the same text are ways to do the same on the same machines.
std::string task_of(const Case& row) {
  std::string task = row.base;
  if (!row.measured.empty()) task += ' ' + std::string(name(row.measured.front().quantity));
  for (const Override& cell : row.overrides) {
    const bool chosen = (cell.key.starts_with("plan") && cell.key != "plan.trainer") ||
                        cell.key == "workload.train.micro_batch" || cell.key == "workload.train.recompute";
    if (!chosen) task += '\n' + cell.key + '=' + cell.value;
  }
  return task;
}

/// Of a rate its inverse; zero where no time is measured.
double measured_time(const Case& row) {
  for (const Measurement& measured : row.measured) {
    if (measured.quantity == MeasuredQuantity::memory_per_gpu) continue;
    return is_rate(std::string(name(measured.quantity))) ? 1.0 / measured.value : measured.value;
  }
  return 0.0;
}

/// Workers begin with what this process knows: the topology, groups and graphs of all runs.
void warm_up(const std::vector<Run>& runs, const std::vector<StackParameter>& parameters) {
  const StackSetting nothing(parameters.size(), 0.0);
  for (const Run& one : runs) {
    try {
      residual_of(one, parameters, nothing);
    } catch (const std::exception&) {  // a worker says what is wrong
      continue;
    }
  }
}

/// "0.1 -0.2", with a dash for what is not measured.
std::string text_of(const RunResidual& residual) {
  const auto number = [](const std::optional<double>& value) { return value ? fmt::format("{:a}", *value) : "-"; };
  return number(residual.time) + " " + number(residual.memory) + " " + number(residual.filled);
}

RunResidual residual_from(const std::string& text) {
  const auto number = [](const std::string& word) {
    return word == "-" ? std::nullopt : std::optional(std::strtod(word.c_str(), nullptr));
  };
  const std::vector<std::string> words = split(text, ' ');
  return {number(words[0]), number(words[1]), *number(words[2])};
}

ExitStatus run(const LearnOptions& options) {
  const std::vector<Run> runs = runs_of(options);
  std::set<int> sizes;
  RunsAtHand at_hand;
  std::vector<LearnedRun> learned;
  std::map<std::string, int> tasks;
  LearnedFrom from{std::filesystem::path(options.table).filename().string(), options.base, {}, {}};
  for (const Run& one : runs) {
    from.names.push_back(one.row.name);
    from.nodes.push_back(one.scenario.cluster.nodes);
    sizes.insert(one.scenario.cluster.nodes);
    const bool pipelined = one.scenario.plan.pipeline > 1;
    at_hand.pipelined = at_hand.pipelined || pipelined;
    const int task = tasks.try_emplace(task_of(one.row), static_cast<int>(tasks.size())).first->second;
    learned.push_back({one.scenario.cluster.nodes, pipelined, task, measured_time(one.row)});
    for (const Measurement& measured : one.row.measured) {
      at_hand.memory = at_hand.memory || measured.quantity == MeasuredQuantity::memory_per_gpu;
    }
  }
  constexpr std::size_t fewest = 5;
  if (runs.size() < fewest) {
    throw UsageError(
        fmt::format("{}: {} runs of trainings; at least {} are needed", options.table, runs.size(), fewest));
  }
  if (from.base.empty()) from.base = runs.front().scenario.trainer;
  at_hand.nodes.assign(sizes.begin(), sizes.end());
  at_hand.usual = &runs.front().scenario;
  const std::vector<StackParameter> parameters = stack_parameters(at_hand);
  const PredictRuns predict = [&](const std::vector<RunAt>& asked) {
    std::vector<RunResidual> residuals(asked.size());
    answer_all(
        asked.size(), options.jobs,
        [&](std::size_t i) { return text_of(residual_of(runs[asked[i].run], parameters, asked[i].setting)); },
        [&](std::size_t i, const Reply& reply) {
          if (reply.kind != Reply::Kind::answer) throw UsageError(runs[asked[i].run].row.name + ": " + reply.text);
          residuals[i] = residual_from(reply.text);
        });
    return residuals;
  };
  warm_up(runs, parameters);
  const LearnedStack stack = learn_stack(parameters, learned, predict);
  write_file(options.output, stack_file(stack, from));
  print_page(to_text(stack, from));
  return ExitStatus::success;
}

}  // namespace

void add_learn(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<LearnOptions>();
  CLI::App* command = app.add_subcommand(
      "learn", "the traits of the software and the cluster that made measured steps, as a trainer's file");
  command->add_option("runs", options->table, "a table of measured steps, as `validate --cases` takes it")
      ->type_name("RUNS.csv")
      ->required();
  command->add_option("-o,--output", options->output, "where the stack goes: for plan.trainer and --stack")
      ->type_name("STACK.yaml")
      ->required();
  command
      ->add_option("--base", options->base, "whose habits hold for what runs say nothing of (default: each run's own)")
      ->type_name("TRAINER");
  add_jobs(*command, options->jobs);
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace foretrain

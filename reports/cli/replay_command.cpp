#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/process.hpp"
#include "model/base/units.hpp"
#include "model/result.hpp"
#include "model/scenario/load/cases.hpp"
#include "model/scenario/load/load.hpp"
#include "model/scenario/scenario.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/gpu_program.hpp"
#include "reports/cli/options.hpp"
#include "reports/measured/measured_graph.hpp"
#include "reports/measured/replay.hpp"
#include "reports/print/number.hpp"
#include "sim/simulate.hpp"
#include "validate/export/export.hpp"
#include "validate/host_replay/replay.hpp"
#include "validate/replay/graph.hpp"
#include "validate/replay/graph_text.hpp"

namespace foretrain {

namespace {

// On GPUs: scenarios become task graphs that foretrain-gpu runs.

/// A scenario, what its files are called after, the row of a table that it is, and how hosts carry it out.
struct ReplayJob {
  std::string name;
  Scenario scenario;
  std::optional<Case> row = {};
  ReplayOptions options = {};
  bool timeline = false;  ///< the tasks' moments are kept
  std::optional<Seconds> predicted_waiting = {};

  /// Between hosts, runs of files are called as their scenario is.
  [[nodiscard]] const std::string& run_name() const { return row ? name : scenario.name; }
};

[[noreturn]] void no_gpu(const std::string& name, const std::string& why) {
  throw UsageError("replay " + name + ": " + why + "; on a machine with a GPU validate/on_gpu.sh runs all, or take " +
                   "the task graph there: foretrain replay " + name + " --export " + name +
                   ".graph, then foretrain-gpu replay " + name + ".graph -o DIR there, and here foretrain replay " +
                   "--from DIR. Without a GPU collectives and steps run between hosts, with one rank per host");
}

/// A scenario's task graph with its prediction. Throws ScenarioError for what cannot be replayed.
replay::Graph gpu_graph(const ReplayJob& named, Fidelity fidelity) {
  check_gpu_replay(named.scenario);
  const std::unique_ptr<Job> job = make_job(named.scenario, fidelity, Recipes::kept);
  const Execution execution = executor_of(*job, fidelity)(job->graph());
  return exported(named.scenario, replay::file_name_of(named.name), job->graph(), execution, fidelity);
}

/// Writes the graphs: one into a file, any number into a folder that exists, as NAME.graph. All of them are made before
/// the first is written. Throws UsageError for several graphs and one file.
void export_graphs(const std::vector<ReplayJob>& scenarios, Fidelity fidelity, const std::string& target) {
  const bool folder = std::filesystem::is_directory(target);
  if (scenarios.size() != 1 && !folder) {
    throw UsageError("replay --export " + target + ": several graphs need a folder that exists");
  }
  std::vector<std::pair<std::filesystem::path, std::string>> files;
  for (const ReplayJob& scenario : scenarios) {
    ReplayJob named = scenario;
    if (!folder) named.name = std::filesystem::path(target).stem().string();
    const replay::Graph graph = gpu_graph(named, fidelity);
    if (graph.name.empty()) throw UsageError("replay --export: \"" + named.name + "\" names no file");
    const std::filesystem::path path =
        folder ? std::filesystem::path(target) / (graph.name + ".graph") : std::filesystem::path(target);
    files.emplace_back(path, to_text(graph));
  }
  for (const auto& [path, text] : files) write_file(path, text);
}

/// Runs scenarios on the GPUs of this machine, by the program foretrain-gpu beside this one, and prints predictions
/// beside measurements. `folder` keeps what was measured; empty: it is not kept. False when one of them could not be
/// run. Throws UsageError, saying what to do, where there is no GPU or no such program.
bool run_on_gpus(const std::vector<ReplayJob>& scenarios, Fidelity fidelity, const std::string& folder) {
  const ScratchFolder scratch;
  const std::string& graphs = scratch.path();
  export_graphs(scenarios, fidelity, graphs);  // errors of the replay come first
  const std::string& name = scenarios.front().name;
  const auto program = find_gpu_program();
  if (!program) no_gpu(name, "it runs on GPUs, and this build has no foretrain-gpu (no CUDA toolkit)");
  const std::string results = folder.empty() ? graphs : folder;
  std::vector<std::string> command = {program->string(), "replay"};
  for (const ReplayJob& scenario : scenarios) {
    command.push_back(graphs + "/" + replay::file_name_of(scenario.name) + ".graph");
  }
  command.insert(command.end(), {"-o", results});
  const FilterResult run = run_filter(command, "");
  if (run.status == ExitStatus::bad_input || run.status > 2) {
    std::string why = run.errors.substr(0, run.errors.find_last_not_of('\n') + 1);
    if (why.empty()) why = "foretrain-gpu ended with status " + std::to_string(run.status);
    no_gpu(name, why);
  }
  warn(run.errors);
  std::vector<MeasuredGraph> measured;
  for (const ReplayJob& scenario : scenarios) {
    measured.push_back(read_measured_graph(results + "/replay-" + replay::file_name_of(scenario.name) + ".json"));
  }
  print_page(measured_graphs_text(measured));
  return run.status == 0;
}

struct ReplayCommand {
  std::vector<std::string> files, overrides;
  std::string table, measurements, result_table, exported, measured;
  double bar = 0.0;  ///< percent; 0: none
  Fidelity fidelity = Fidelity::flows;
  int jobs = 1;
  bool timeline = false;
};

/// The executor of measurements made here. Tables also hold those of others (gloo, mpi, server).
constexpr const char* own_executor = "own";

/// Messages from here on count for the bar: below, the latency of a busy kernel is all there is.
constexpr Bytes smallest_counted(1e6);

std::vector<ReplayJob> named_scenarios(const ReplayCommand& command) {
  std::vector<ReplayJob> named;
  for (const std::string& file : command.files) {
    named.push_back({std::filesystem::path(file).stem().string(), load_scenario(file, command.overrides)});
  }
  if (command.table.empty()) return named;
  for (Case& row : read_cases(command.table)) {
    for (const std::string& text : command.overrides) row.overrides.push_back(parse_override(text));
    Scenario scenario = scenario_of(row);
    named.push_back({row.name, std::move(scenario), std::move(row)});
  }
  return named;
}

/// A column replay.NAME of the job's row; 0 where there is none.
int count_in(const ReplayJob& job, const std::string& column) {
  const std::string stated = job.row && job.row->replay.contains(column) ? job.row->replay.at(column) : "";
  if (stated.empty()) return 0;
  try {
    return static_cast<int>(parse_integer(stated, 1, 1000));
  } catch (const UnitError& error) {
    throw ScenarioError(job.row->where, "replay." + column, error.got(), error.expected());
  }
}

/// Whether another program carried out this row, which is left as it is then. Throws ScenarioError where nobody did.
bool is_of_others(const ReplayJob& named) {
  if (!named.row) return false;
  const auto stated = named.row->replay.find("executor");
  if (stated == named.row->replay.end() || stated->second == own_executor) return false;
  if (!named.row->measured.empty()) return true;
  throw ScenarioError(named.row->where, "replay.executor", "\"" + stated->second + "\" is run by another program",
                      "own, or the time that was measured");
}

void leave_rows_of_others(std::vector<ReplayJob>& named) {
  std::string names;
  for (const ReplayJob& one : named) {
    if (is_of_others(one)) names += (names.empty() ? "" : ", ") + one.name;
  }
  if (names.empty()) return;
  std::erase_if(named, is_of_others);
  warn("rows that other programs carried out are left as they are: " + names);
}

/// Plans all runs before the first one starts.
std::vector<ReplayPlan> plans_of(std::vector<ReplayJob>& jobs, const ReplayCommand& command) {
  for (ReplayJob& job : jobs) {
    job.options.repetitions = count_in(job, "repetitions");
    job.timeline = command.timeline || count_in(job, "timeline") > 0;
  }
  const std::vector<Outcome> outcomes = predict_with_progress(
      jobs.size(), command.jobs, [&](std::size_t i) { return predict(jobs[i].scenario, command.fidelity); });
  std::vector<ReplayPlan> plans;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!outcomes[i].result) throw UsageError(jobs[i].run_name() + ": " + outcomes[i].error);
    jobs[i].options.predicted = outcomes[i].result->time();
    if (const TrainResult* train = outcomes[i].result->train()) {
      jobs[i].predicted_waiting = train->breakdown.exposed_communication + train->breakdown.pipeline_bubble;
    }
    plans.push_back(plan_replay(jobs[i].scenario, jobs[i].options));
  }
  return plans;
}

/// Measurements of an earlier, interrupted replay on this machine.
HostMeasurements earlier(const std::string& path) {
  HostMeasurements fresh{.machine = this_machine(), .runs = {}};
  if (path.empty() || !std::filesystem::exists(path) || !std::filesystem::is_regular_file(path)) return fresh;
  HostMeasurements known = read_host_measurements(path);
  if (describe(known.machine) == describe(fresh.machine)) return known;
  throw UsageError(
      fmt::format("{}: measured on another machine ({}): choose another file", path, describe(known.machine)));
}

void set_prediction(const ReplayJob& job, HostMeasurement& run) {
  run.name = job.run_name();
  run.group = job.row ? job.row->group : "";
  run.predicted = job.options.predicted;
  run.trains = std::holds_alternative<TrainWorkload>(job.scenario.workload);
  if (run.waiting) run.predicted_waiting = job.predicted_waiting;
}

/// Of a step's tasks those that take time.
std::vector<HostTask> tasks_of(const ReplayJob& job, const StepOfRanks& step, const Execution& measured,
                               Fidelity fidelity) {
  const TaskGraph& graph = step.graph.graph;
  const Topology topology(job.scenario.cluster);
  const Execution predicted =
      fidelity == Fidelity::estimate ? run(graph) : simulate(graph, topology, fidelity, job.scenario.background);
  std::vector<HostTask> tasks;
  for (std::size_t i = 0; i < graph.tasks().size(); ++i) {
    const auto task = static_cast<TaskId>(i);
    if (!(predicted.finish[i] > predicted.start[i])) continue;
    const Block& block = graph.block_of(task);
    tasks.push_back({graph.resource_of(task).name, block.name, std::string(name(block.category)), predicted.start[i],
                     predicted.finish[i], measured.start[i], measured.finish[i]});
  }
  return tasks;
}

std::vector<RankTask> rank_tasks_of(const StepOfRanks& step, const std::vector<std::vector<TaskSpan>>& spans) {
  const TaskGraph& graph = step.graph.graph;
  std::vector<Bytes> sent(graph.tasks().size());
  for (const StepGraph::Transfer& t : step.graph.transfers) {
    sent[at_index(t.task)] = step.step.transfers[at_index(t.transfer)].sent;
  }
  std::vector<RankTask> tasks;
  for (std::size_t rank = 0; rank < spans.size(); ++rank) {
    const std::vector<TaskId>& numbers = step.tasks[rank];
    for (std::size_t i = 0; i < spans[rank].size(); ++i) {
      RankTask& task = tasks.emplace_back(RankTask{static_cast<int>(rank), "", "", Bytes(0.0),
                                                   Seconds(spans[rank][i].start), Seconds(spans[rank][i].end)});
      if (i < numbers.size()) {
        const Block& block = graph.block_of(numbers[i]);
        task.name = block.name;
        task.category = name(block.category);
        task.sent = sent[at_index(numbers[i])];
      } else {
        const bool loads = step.step.loader && i + 1 == spans[rank].size();
        task.name = task.category = name(loads ? Category::data : Category::host);
      }
    }
  }
  return tasks;
}

HostMeasurement* find_run(HostMeasurements& known, const ReplayJob& job, const std::string& plan) {
  const auto found = std::ranges::find_if(
      known.runs, [&](const HostMeasurement& run) { return run.name == job.run_name() && run.plan == plan; });
  return found == known.runs.end() ? nullptr : &*found;
}

bool meets_bar(const std::vector<HostMeasurement>& runs, double bar) {
  std::vector<HostMeasurement> large = runs;
  std::erase_if(large, [](const HostMeasurement& run) { return run.size < smallest_counted; });
  const ErrorStatistics errors = error_statistics(comparisons_of(large));
  if (errors.n == 0) return true;
  print(fmt::format("\n{} of 1 MB and more: mean absolute error {:.1f} %, bias {:+.1f} %, worst {:+.1f} % ({})\n",
                    counted(errors.n, "run"), errors.mape * 100.0, errors.bias * 100.0, errors.worst * 100.0,
                    errors.worst_case));
  if (bar <= 0.0 || errors.mape * 100.0 <= bar) return true;
  warn(fmt::format("mean absolute error {:.1f} %, the bar is {:.1f} %", errors.mape * 100.0, bar));
  return false;
}

ExitStatus compare(const ReplayCommand& command) {
  std::vector<MeasuredGraph> graphs = read_measured_graphs(command.measured);
  for (const ReplayJob& named : named_scenarios(command)) {
    const auto found = std::ranges::find(graphs, replay::file_name_of(named.name), &MeasuredGraph::name);
    if (found != graphs.end()) predict_again(*found, gpu_graph(named, command.fidelity));
  }
  print_page(measured_graphs_text(graphs));
  for (const MeasuredGraph& graph : graphs) {
    if (graph.steps.empty() || command.bar <= 0.0 || std::abs(graph.error()) * 100.0 <= command.bar) continue;
    warn(fmt::format("{}: {:+.1f} %, the bar is {:.1f} %", graph.name, graph.error() * 100.0, command.bar));
    return ExitStatus::prediction_failed;
  }
  return ExitStatus::success;
}

/// Whether all of them run on the GPUs of one machine; others run on hosts made of this one.
bool on_gpus(const std::vector<ReplayJob>& scenarios) {
  const auto gpus =
      std::ranges::count_if(scenarios, [](const ReplayJob& one) { return one.scenario.cluster.nodes == 1; });
  if (gpus > 0 && std::cmp_not_equal(gpus, scenarios.size())) {
    throw UsageError("replay: some scenarios run on GPUs, others on hosts: replay them one after the other");
  }
  return gpus > 0;
}

ExitStatus run(const ReplayCommand& command) {
  if (!command.measured.empty()) return compare(command);
  if (command.files.empty() && command.table.empty()) {
    throw UsageError("replay: name a scenario, or a table of them with --cases");
  }
  if (!command.result_table.empty() && command.table.empty()) throw UsageError("--table goes with --cases");
  if (!command.exported.empty()) {
    export_graphs(named_scenarios(command), command.fidelity, command.exported);
    return ExitStatus::success;
  }
  std::vector<ReplayJob> jobs = named_scenarios(command);
  if (on_gpus(jobs)) {
    return run_on_gpus(jobs, command.fidelity, command.measurements) ? ExitStatus::success
                                                                     : ExitStatus::prediction_failed;
  }
  leave_rows_of_others(jobs);
  const std::vector<ReplayPlan> plans = plans_of(jobs, command);
  HostMeasurements measurements = earlier(command.measurements);
  HostReplayer replayer;

  std::vector<HostMeasurement> runs;
  bool failed = false;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (HostMeasurement* known = find_run(measurements, jobs[i], plan_hash(plans[i]))) {
      set_prediction(jobs[i], *known);  // which may have become better since
      runs.push_back(*known);
    } else {
      try {
        runs.push_back(replayer.run(plans[i]));
      } catch (const ReplayError& error) {
        warn(jobs[i].run_name() + ": " + error.what());
        failed = true;
        continue;
      }
      set_prediction(jobs[i], runs.back());
      if (jobs[i].timeline && runs.back().execution) {
        runs.back().tasks = tasks_of(jobs[i], *plans[i].graph, *runs.back().execution, command.fidelity);
        runs.back().rank_tasks = rank_tasks_of(*plans[i].graph, runs.back().spans);
      }
      measurements.runs.push_back(runs.back());
    }
    if (!command.measurements.empty()) write_file(command.measurements, to_json(measurements));
    if (isatty(STDERR_FILENO) != 0) fmt::print(stderr, "\r{} of {} runs", i + 1, jobs.size());
  }
  if (!jobs.empty()) print_page(replay_text(runs));
  if (!command.result_table.empty()) {
    write_file(command.result_table,
               measured_table(read_text_file(command.table), command.table, runs, measurements.machine));
  }
  const bool passed = meets_bar(runs, command.bar);
  return passed && !failed ? ExitStatus::success : ExitStatus::prediction_failed;
}

}  // namespace

void add_replay(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<ReplayCommand>(
      app, "replay",
      "Run scenarios on this machine's GPUs, or between processes on it, and compare with their predictions", status,
      run);
  command.add_option("FILE", options.files,
                     "scenarios on one node with GPUs, or with one rank per node, such as replay-ring-4");
  add_text(command, "--cases", options.table, "CASES.csv",
           "a table of scenarios, with columns replay.repetitions and replay.timeline");
  add_text(command, "-o,--output", options.measurements, "MEASUREMENTS.json|DIR",
           "write every repetition (GPUs: a folder); results already there are not measured again");
  add_text(command, "--table", options.result_table, "OUT.csv",
           "write the table of --cases with measured.time or measured.step_time filled in");
  add_text(command, "--export", options.exported, "FILE.graph|DIR",
           "write the task graph for foretrain-gpu replay instead of running it (several: a folder)");
  add_text(command, "--from", options.measured, "DIR",
           "compare results of foretrain-gpu replay with new predictions of the same names");
  add_text(command, "--bar", options.bar, "PERCENT", "fail if the mean absolute error from 1 MB up exceeds this")
      ->check(CLI::Range(1e-6, 1e6).description(""));
  command.add_flag("--timeline", options.timeline,
                   "also record task times of steps between processes (in a table: replay.timeline, 1)");
  add_fidelity(command, options.fidelity);
  add_overrides(command, options.overrides);
  add_jobs(command, options.jobs);
  add_calibration(command, options.overrides);
}

}  // namespace foretrain

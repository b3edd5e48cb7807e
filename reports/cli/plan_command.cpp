#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/number.hpp"
#include "model/base/seen_files.hpp"
#include "model/base/units.hpp"
#include "model/base/words.hpp"
#include "model/hardware/check.hpp"
#include "model/hardware/topology.hpp"
#include "model/job/job.hpp"
#include "model/job/published_uncertainty.hpp"
#include "model/planning/least_machines.hpp"
#include "model/planning/machine_use.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plan_options.hpp"
#include "reports/cli/plan_uncertainty.hpp"
#include "reports/cli/shared_reports.hpp"
#include "reports/cli/workers.hpp"
#include "reports/export/exporter.hpp"
#include "sim/simulate.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

struct PlanOptions {
  std::string file;
  std::vector<std::string> overrides, fixed, allowed;
  HardwareChoice hardware;
  PlanAim aim;
  std::optional<std::string> within, budget;
  std::string output;
  Fidelity fidelity = Fidelity::flows;
  bool json = false, command = false;
  std::size_t top = 200;
  int jobs = 1;
};

std::vector<std::string> all_overrides(const PlanOptions& options, const std::vector<std::string>& of_hardware) {
  std::vector<std::string> overrides = options.overrides;
  overrides.insert(overrides.end(), of_hardware.begin(), of_hardware.end());
  return overrides;
}

struct Searched {
  std::vector<Hardware> hardware;
  std::vector<PlanSpace> spaces;
  std::vector<PlanObjective> objectives;
};

/// Each candidate predicted, in the order given; those whose prediction fails are left out and reported.
std::vector<RankedPlan> ranked(const std::vector<PlanCandidate>& candidates, const Searched& searched,
                               const PlanOptions& options) {
  const auto& [hardware, spaces, objectives] = searched;
  // Neighbours are predicted by the same worker: plans of one layout have most in common.
  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(candidates[i].space, candidates[i].point); });
  std::vector<Outcome> in_order = predict_with_progress(candidates.size(), options.jobs, [&](std::size_t i) {
    const PlanCandidate& candidate = candidates[order[i]];
    return predict(spaces[static_cast<std::size_t>(candidate.space)].read(candidate.point), options.fidelity,
                   Detail::numbers);
  });
  std::vector<Outcome> outcomes(candidates.size());
  for (std::size_t i = 0; i < order.size(); ++i) outcomes[order[i]] = std::move(in_order[i]);
  std::vector<std::vector<std::string>> limits;  // of each space's network
  for (const PlanSpace& space : spaces) limits.push_back(network_limits(space.example().cluster, space.topology()));
  std::vector<RankedPlan> plans;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto space = static_cast<std::size_t>(candidates[i].space);
    if (!outcomes[i].result) {
      warn(fmt::format("{}: {}", describe(candidates[i].point), outcomes[i].error));
      continue;
    }
    RankedPlan plan;
    plan.point = candidates[i].point;
    plan.hardware = hardware[space].label;
    plan.limits = limits[space];
    plan.is_measured_gpu = has_measured_step(spaces[space].example().cluster.node.gpu);
    plan.machines = hardware[space].name;
    plan.overrides = all_overrides(options, hardware[space].overrides);
    const std::vector<std::string> own = spaces[space].overrides(plan.point);
    plan.overrides.insert(plan.overrides.end(), own.begin(), own.end());
    plan.result = *outcomes[i].result;
    plan.estimate = candidates[i].step;
    const TrainResult& train = plan.train();
    plan.value = objectives[space].value(train.step_time, train.memory.total());
    const Scenario& example = spaces[space].example();
    if (example.learned && options.aim.goal != PlanGoal::memory) {
      plan.chance_of_shortage = chance_of_shortage(train.memory.total() / train.memory.capacity,
                                                   spread_of_shortfall(example.learned->memory_shortfall));
    }
    const Cluster& cluster = example.cluster;
    plan.excess = excess(train, options.aim.limits);
    plan.usd = usd_per_second(cluster) * train.step_time.value();
    plan.joules = watts_of(cluster) * train.step_time.value();
    plans.push_back(std::move(plan));
  }
  return plans;
}

/// Hardware on which no plan is possible is reported, each reason once, unless it is the only one and there is no other
/// hardware.
Searched spaces_of(const PlanOptions& options, const PlanDimensions& chosen) {
  Searched all;
  struct Impossible {
    std::string text;
    std::exception_ptr error;
    std::vector<std::string> hardware;
  };
  std::vector<Impossible> impossible;
  const auto attempt = [&](const Hardware& hardware, const auto& work) {
    try {
      work();
    } catch (const ScenarioError& error) {
      if (hardware.label.empty()) throw;
      auto same = std::ranges::find(impossible, error.what(), &Impossible::text);
      if (same == impossible.end()) same = impossible.insert(same, {error.what(), std::current_exception(), {}});
      same->hardware.push_back(hardware.label);
    }
  };
  const auto add = [&](const Hardware& one) {
    const YamlNode document = scenario_document(options.file, all_overrides(options, one.overrides));
    all.spaces.emplace_back(document, options.file, chosen);
    all.hardware.push_back(one);
    all.objectives.push_back(objective_of(options.aim, all.spaces.back().example()));
  };
  const bool all_alone = std::ranges::any_of(options.fixed, is_gpus_per_node);
  const std::vector<Hardware> hardware = hardware_of(options.hardware);
  Progress progress(hardware.size(), "kinds of machines");
  for (const Hardware& machines : hardware) {
    progress.advance();
    attempt(machines, [&] {
      const std::vector<std::string> overrides = all_overrides(options, machines.machines);
      for (const Hardware& one : uses_of(machines, options.file, overrides, all_alone)) attempt(one, [&] { add(one); });
    });
  }
  if (all.spaces.empty() && impossible.size() == 1) std::rethrow_exception(impossible.front().error);
  for (const Impossible& one : impossible) warn(fmt::format("{}: {}", fmt::join(one.hardware, "; "), one.text));
  if (all.spaces.empty()) std::rethrow_exception(impossible.back().error);
  return all;
}

/// Whether the best plan's machines would train more samples a second with a batch that their GPUs divide.
std::optional<BetterBatch> better_batch(const RankedPlan& best, const Searched& searched, const PlanOptions& options,
                                        const RunTasks& run_tasks) {
  if (options.aim.goal == PlanGoal::memory) return std::nullopt;
  const auto found = std::ranges::find(searched.hardware, best.hardware, &Hardware::label);
  const Scenario& example = searched.spaces[at_index(found - searched.hardware.begin())].example();
  BetterBatch better;
  better.instead_of = std::get<TrainWorkload>(example.workload).global_batch;
  better.gpus_per_node = found->all_gpus;
  const auto batch = dividing_batch(better.instead_of, std::int64_t{example.cluster.nodes} * found->all_gpus);
  if (!batch) return std::nullopt;
  better.batch = *batch;
  std::vector<std::string> overrides = all_overrides(options, found->machines);
  overrides.push_back(fmt::format("workload.train.global_batch={}", better.batch));
  try {
    constexpr double worth_telling = 1.01;
    const std::vector<PlanSpace> spaces = {
        PlanSpace(scenario_document(options.file, overrides), options.file, searched.spaces.front().chosen())};
    PlanObjective objective = objective_of(options.aim, spaces.front().example());
    const Seconds as_fast =
        best.estimate * (static_cast<double>(better.batch) / static_cast<double>(better.instead_of));
    objective.limit = std::min(objective.limit, as_fast / worth_telling);
    const PlanSearch search = search_plans(spaces, {objective}, 1, run_tasks);
    if (search.best.empty()) return std::nullopt;
    better.step = search.best.front().step;
    better.speedup = as_fast / better.step;
    return better;
  } catch (const ScenarioError&) {
    return std::nullopt;  // a batch that something else rules out
  }
}

/// The same without limits; by how far they are exceeded, if that is asked.
Searched without_limits(Searched searched, bool by_excess) {
  for (PlanObjective& objective : searched.objectives) {
    if (by_excess) objective = {PlanGoal::time, 1.0 / objective.limit.value()};
    objective.limit = Seconds::infinity();
  }
  return searched;
}

Searched only_on(const std::string& name, const Searched& searched) {
  Searched only;
  for (std::size_t i = 0; i < searched.spaces.size(); ++i) {
    if (searched.hardware[i].name != name) continue;
    only.hardware.push_back(searched.hardware[i]);
    only.spaces.push_back(searched.spaces[i]);
    only.objectives.push_back(searched.objectives[i]);
  }
  return only;
}

/// The best plan on each kind of machines, by a search of its own where none is among those ranked; nothing where one
/// kind alone was asked for.
std::vector<RankedPlan> best_on_each(const PlanReport& report, const Searched& searched, const PlanOptions& options,
                                     const RunTasks& run_tasks) {
  std::vector<std::string> names;
  for (const Hardware& one : searched.hardware) {
    if (names.empty() || names.back() != one.name) names.push_back(one.name);
  }
  std::vector<RankedPlan> all;
  for (std::size_t i = 0; names.size() > 1 && i < names.size(); ++i) {
    const auto on_it = [&](const RankedPlan& plan) { return plan.machines == names[i]; };
    const auto known = std::ranges::find_if(report.ranked, on_it);
    if (known != report.ranked.end()) {
      all.push_back(*known);
      continue;
    }
    const Searched only = without_limits(only_on(names[i], searched), false);
    const PlanSearch search = search_plans(only.spaces, only.objectives, 1, run_tasks);
    for (RankedPlan& plan : ranked(search.best, only, options)) all.push_back(std::move(plan));
  }
  return all;
}

/// The prediction of the scenario's own plan; nothing where it has none, or other machines are searched.
std::optional<Result> own_plan(const PlanOptions& options) {
  const HardwareChoice& other = options.hardware;
  if (!other.nodes.empty() || !other.node.empty() || !other.networks.empty()) return std::nullopt;
  try {
    const Scenario scenario = load_scenario(options.file, options.overrides);
    Result result = predict(scenario, options.fidelity, Detail::numbers);
    result.settings = settings_of(scenario);
    return result;
  } catch (const ScenarioError&) {
    return std::nullopt;
  } catch (const ImpossiblePlan&) {
    return std::nullopt;
  }
}

PlanReport searched(const PlanOptions& options) {
  const FileView view;  // all plans are of the same files
  PlanDimensions chosen = plan_dimensions(options.fixed, options.allowed);
  Searched space = spaces_of(options, chosen);
  catch_signals();
  PlanReport report;
  report.exporter = exporter_of(space.spaces.front().example());
  if (fix_lacking(report.exporter, chosen)) space = spaces_of(options, chosen);
  report.scenario = space.spaces.front().example().name;
  report.goal = options.aim.goal;
  report.file = options.file;
  report.limits = options.aim.limits;
  double seconds = 0.0;
  const RunTasks run_tasks = tasks_shared_out(options.jobs);
  const auto search_space = [&] {
    Progress progress(0, "layouts");
    report.search = search_plans(space.spaces, space.objectives, options.top, run_tasks, [&](const PlanSearch& search) {
      progress.advance_to(search.settled, search.layouts);
    });
    seconds = progress.elapsed_seconds();
  };
  const auto found_nothing = [&] { return report.search.best.empty() && report.search.complete; };
  const auto search_by_limits = [&] {
    search_space();
    if (!found_nothing() || !options.aim.limits.any()) return;
    space = without_limits(std::move(space), true);
    search_space();
  };
  search_by_limits();
  if (is_short_of_memory(report.search, chosen, report.goal)) {
    const PlanSearch plain = report.search;
    const Searched plain_space = space;
    chosen.allow(PlanExtra::offload);
    space = spaces_of(options, chosen);
    search_by_limits();
    report.without_extras = times_as_long(plain, report.search);
    if (!report.without_extras) {
      report.search = plain;
      space = plain_space;
    }
  }
  keep_plans_of(report.exporter, space.spaces, report.search.best);
  const PlanSearch& search = report.search;
  warn(fmt::format("{} candidates in {:.1f} s", search.counts.plans, seconds));
  if (search.counts.exceeded > 0) {
    warn(fmt::format("{} estimates are below their lower bounds: a faster plan may exist", search.counts.exceeded));
  }
  if (search.best.empty() && search.complete) {
    const PlanSpace& first = space.spaces.front();
    report.least = least_machines(first.document(), first.chosen(), first.example().cluster);
  }
  report.ranked = ranked(search.best, space, options);
  report.infeasible = ranked(search.infeasible, space, options);
  if (!report.ranked.empty() && search.complete) draw_plans(report, run_tasks);
  finish(report);
  if (search.complete) compare_machines(report, best_on_each(report, space, options, run_tasks));
  if (search.complete && !report.ranked.empty()) {
    report.better_batch = better_batch(report.ranked.front(), space, options, run_tasks);
  }
  report.own = own_plan(options);
  if (report.own && !report.ranked.empty()) {
    RankedPlan& best = report.ranked.front();
    best.result.settings = settings_of(load_scenario(options.file, best.overrides));
  }
  report.with_command = options.command;
  return report;
}

/// Value of an option; nothing if it is not given. Throws UsageError.
template <typename Parse>
auto stated(const char* option, const std::optional<std::string>& text, Parse parse) {
  try {
    return text ? std::optional(parse(*text)) : std::nullopt;
  } catch (const UnitError& error) {
    throw UsageError(fmt::format("{} {}: {}; {}", option, *text, error.got(), error.expected()));
  }
}

ExitStatus run_plan(const PlanOptions& asked) {
  PlanOptions options = asked;
  options.aim.limits = {stated("--within", options.within, parse_quantity<Seconds>),
                        stated("--budget", options.budget, parse_usd)};
  const PlanReport report = searched(options);
  if (!options.output.empty()) write_file(options.output, to_csv(report));
  options.json ? print(to_json(report)) : print_page(to_text(report));
  if (!report.ranked.empty()) {
    for (const std::string& warning : report.ranked.front().result.warnings) {
      if (warning.find("assumed: ") != std::string::npos) warn(warning);
    }
  }
  return report.ranked.empty() ? ExitStatus::prediction_failed : ExitStatus::success;
}

}  // namespace

PlanReport plan_report(const PlotOptions& options) {
  PlanOptions own;
  own.file = options.file();
  own.overrides = options.overrides;
  own.fidelity = options.fidelity;
  own.jobs = options.jobs;
  return searched(own);
}

void add_plan(CLI::App& app, ExitStatus& status) {
  auto [command, options] = add_command<PlanOptions>(
      app, "plan", "Find the fastest parallel plan that fits, and why others are slower", status, run_plan);
  command.add_option("FILE", options.file, "a scenario file, or a name from `foretrain scenarios list`")->required();
  add_word<PlanGoal>(command, "--objective", options.aim.goal, "quantity to minimise (default: time)");
  add_text(command, "--within", options.within, "TIME", "longest time to train the scenario's samples: '60 days'");
  add_text(command, "--budget", options.budget, "MONEY", "highest cost of the training: '3 M USD'");
  add_text(command, "--fix", options.fixed, "KEY", "keys that keep the scenario's value: tensor, micro_batch, …")
      ->delimiter(',');
  add_text(command, "--allow", options.allowed, "WORD",
           "features to search beyond the framework's defaults: offload, schedules, servers, algorithms")
      ->delimiter(',');
  add_text(command, "--nodes", options.hardware.nodes, "A..B", "node counts to compare: 8,16, or 8..64 (doubling)");
  add_text(command, "--node", options.hardware.node, "NAME[@USD][,NAME]",
           "node types to compare, optionally with prices in USD/GPU/hour");
  add_text(command, "--network", options.hardware.networks, "KEY=VALUES",
           "networks to compare: nic_bandwidth=200 Gbit/s,400 Gbit/s");
  add_number(command, "--top", options.top, 1, 10000, "number of plans to rank by simulation (default: 200)");
  add_text(command, "-o,--output", options.output, "OUT.csv", "write the ranked plans as a table of cases");
  command.add_flag("--json", options.json, "print JSON");
  command.add_flag("--command", options.command, "also print the commands that predict the best plan and export it");
  add_fidelity(command, options.fidelity);
  add_overrides(command, options.overrides);
  add_headroom(command, options.overrides);
  add_calibration(command, options.overrides);
  add_jobs(command, options.jobs);
}

}  // namespace foretrain

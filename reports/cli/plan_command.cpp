#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/hardware/network_limits.hpp"
#include "model/hardware/topology.hpp"
#include "model/planning/machine_use.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/effects.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/plan_draws.hpp"
#include "reports/cli/told.hpp"
#include "reports/cli/vary.hpp"
#include "reports/cli/workers.hpp"
#include "sim/simulate.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

namespace {

struct PlanOptions {
  std::string file;
  std::vector<std::string> overrides, fixed, networks;
  std::string calibration, nodes, node, within, output;
  PlanGoal goal = PlanGoal::time;
  Fidelity fidelity = Fidelity::flows;
  bool json = false;
  std::size_t top = 200;
  int jobs = 1;
};

/// One kind of hardware, and the values by which it differs from the scenario's.
struct Hardware {
  std::vector<std::string> machines;   ///< overrides that say which these are
  std::vector<std::string> overrides;  ///< these, and how many of their GPUs train
  std::string label;
  int all_gpus = 0;  ///< of a machine that may train
};

/// "dgx-h100@2.5" → the node and what one of its GPUs costs an hour.
std::vector<std::string> node_overrides(const std::string& node) {
  const std::size_t at = node.find('@');
  std::vector<std::string> overrides = {"cluster.node=" + node.substr(0, at)};
  if (at != std::string::npos) overrides.push_back(fmt::format("cluster.price={} USD/GPU/hour", node.substr(at + 1)));
  return overrides;
}

/// All combinations of nodes, their number and networks; one without anything where nothing varies.
std::vector<Hardware> hardware_of(const PlanOptions& options) {
  std::vector<Variation> variations;
  if (!options.node.empty()) variations.push_back(parse_variation("cluster.node=" + options.node));
  if (!options.nodes.empty()) {
    const bool stepped = options.nodes.find_first_of("x+,") != std::string::npos;
    const bool range = options.nodes.find("..") != std::string::npos;
    variations.push_back(parse_variation("cluster.nodes=" + options.nodes + (range && !stepped ? "x2" : "")));
  }
  for (const std::string& text : options.networks) variations.push_back(parse_variation("cluster.network." + text));
  std::vector<Hardware> all(1);
  for (const Variation& variation : variations) {
    std::vector<Hardware> longer;
    for (const Hardware& so_far : all) {
      for (const std::string& value : variation.values) {
        Hardware next = so_far;
        const std::string change = fmt::format("{}={}", variation.key, value);
        const auto changes = variation.key == "cluster.node" ? node_overrides(value) : std::vector{change};
        next.machines.insert(next.machines.end(), changes.begin(), changes.end());
        const std::string word = variation.key == "cluster.nodes" ? value + " nodes" : value;
        next.label += (next.label.empty() ? "" : ", ") + word;
        longer.push_back(std::move(next));
      }
    }
    all = std::move(longer);
  }
  return all;
}

bool is_gpus_per_node(std::string_view key) { return key == "gpus_per_node" || key == "cluster.gpus_per_node"; }

/// All boards of the machines: idle ones are powered, too, and none is known to take less.
double watts_of(const Cluster& cluster) {
  return cluster.node.gpu.board_power_watts * cluster.node.gpus * cluster.nodes;
}
double usd_per_second(const Cluster& cluster) {
  return cluster.usd_per_gpu_hour.value_or(0.0) * cluster.gpus() / 3600.0;
}

PlanObjective objective_of(const PlanOptions& options, const Scenario& scenario) {
  PlanObjective objective{options.goal};
  const Cluster& cluster = scenario.cluster;
  if (options.goal == PlanGoal::cost) {
    if (!cluster.usd_per_gpu_hour) {
      throw UsageError("--objective cost: no price; state cluster.price: 2.5 USD/GPU/hour, or --node NAME@2.5");
    }
    objective.per_second = usd_per_second(cluster);
  }
  if (options.goal == PlanGoal::energy) {
    if (!(watts_of(cluster) > 0.0)) {
      throw UsageError(fmt::format("--objective energy: no board power is known of {}", cluster.node.gpu.name));
    }
    objective.per_second = watts_of(cluster);
  }
  if (!options.within.empty()) {
    const auto& train = std::get<TrainWorkload>(scenario.workload);
    if (!train.training_samples) {
      throw UsageError("--within: how long is the training? State workload.train.samples, such as 1 trillion tokens");
    }
    try {
      objective.limit =
          parse_quantity<Seconds>(options.within) * (static_cast<double>(train.global_batch) / *train.training_samples);
    } catch (const UnitError& error) {
      throw UsageError(fmt::format("--within {}: {}; {}", options.within, error.got(), error.expected()));
    }
  }
  return objective;
}

RankedPlan::Machines machines_of(const Cluster& cluster) {
  RankedPlan::Machines machines{cluster.node.name, cluster.gpus(), {}, network_limits(cluster, Topology(cluster))};
  for (int node = 0; node < cluster.nodes; ++node) {
    const Network& network = cluster.network_at(node);
    machines.cards += network.nic_bandwidth * network.nics_per_node;
  }
  return machines;
}

std::vector<std::string> all_overrides(const PlanOptions& options, const std::vector<std::string>& of_hardware) {
  std::vector<std::string> overrides = options.overrides;
  overrides.insert(overrides.end(), of_hardware.begin(), of_hardware.end());
  return overrides;
}

/// Each candidate predicted, in the order given; those whose prediction fails are left out and told.
std::vector<RankedPlan> ranked(const std::vector<PlanCandidate>& candidates, const std::vector<PlanSpace>& spaces,
                               const std::vector<Hardware>& hardware, const std::vector<PlanObjective>& objectives,
                               const PlanOptions& options) {
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
  std::vector<RankedPlan::Machines> machines;
  for (const PlanSpace& space : spaces) machines.push_back(machines_of(space.example().cluster));
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
    plan.overrides = all_overrides(options, hardware[space].overrides);
    const std::vector<std::string> own = spaces[space].overrides(plan.point);
    plan.overrides.insert(plan.overrides.end(), own.begin(), own.end());
    plan.result = *outcomes[i].result;
    plan.estimate = candidates[i].step;
    const TrainResult& train = plan.train();
    plan.value = objectives[space].value(train.step_time, train.memory.total());
    const Scenario& example = spaces[space].example();
    if (example.learned && options.goal != PlanGoal::memory) {
      plan.chance_of_shortage = chance_of_shortage(train.memory.total() / train.memory.capacity,
                                                   spread_of_shortfall(example.learned->memory_shortfall));
    }
    const Cluster& cluster = example.cluster;
    plan.machines = machines[space];
    plan.usd = usd_per_second(cluster) * train.step_time.value();
    plan.joules = watts_of(cluster) * train.step_time.value();
    plans.push_back(std::move(plan));
  }
  return plans;
}

/// The same machines, with all their GPUs or fewer.
std::vector<Hardware> uses_of(const Hardware& hardware, const PlanOptions& options) {
  std::vector<MachineUse> uses =
      machine_uses(scenario_document(options.file, all_overrides(options, hardware.machines)));
  if (std::ranges::any_of(options.fixed, is_gpus_per_node)) uses.resize(1);
  std::vector<Hardware> all;
  for (const MachineUse& use : uses) {
    Hardware& one = all.emplace_back(hardware);
    one.all_gpus = uses.front().used;
    one.overrides = hardware.machines;
    one.overrides.insert(one.overrides.end(), use.overrides.begin(), use.overrides.end());
    if (uses.size() == 1) continue;
    one.label +=
        fmt::format("{}{} GPUs of each", one.label.empty() ? "" : ", ",
                    use.used == use.of ? fmt::format("all {}", use.of) : fmt::format("{} of {}", use.used, use.of));
  }
  return all;
}

/// Of plans of one training: what is searched, and where.
struct Searched {
  std::vector<Hardware> hardware;
  std::vector<PlanSpace> spaces;
  std::vector<PlanObjective> objectives;
};

/// Hardware on which no plan is possible is told, unless there is none else.
Searched spaces_of(const PlanOptions& options) {
  const PlanDimensions chosen = plan_dimensions(options.fixed);
  Searched all;
  std::optional<ScenarioError> why;
  const auto attempt = [&](const Hardware& hardware, const auto& work) {
    try {
      work();
    } catch (const ScenarioError& error) {
      if (hardware.label.empty()) throw;
      warn(fmt::format("{}: {}", hardware.label, error.what()));
      why = error;
    }
  };
  const auto add = [&](const Hardware& one) {
    const YamlNode document = scenario_document(options.file, all_overrides(options, one.overrides));
    all.spaces.emplace_back(document, options.file, chosen);
    all.hardware.push_back(one);
    all.objectives.push_back(objective_of(options, all.spaces.back().example()));
  };
  for (const Hardware& machines : hardware_of(options)) {
    attempt(machines, [&] {
      for (const Hardware& one : uses_of(machines, options)) attempt(one, [&] { add(one); });
    });
  }
  if (all.spaces.empty()) throw *why;
  return all;
}

/// Whether the best plan's machines would train more samples a second with a batch that their GPUs divide.
std::optional<BetterBatch> better_batch(const RankedPlan& best, const Searched& searched, const PlanOptions& options,
                                        const RunTasks& run_tasks) {
  if (options.goal == PlanGoal::memory) return std::nullopt;
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
        PlanSpace(scenario_document(options.file, overrides), options.file, plan_dimensions(options.fixed))};
    PlanObjective objective = objective_of(options, spaces.front().example());
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

PlanReport searched(const PlanOptions& options) {
  const Searched space = spaces_of(options);
  const auto& [hardware, spaces, objectives] = space;
  catch_signals();
  PlanReport report;
  report.scenario = spaces.front().example().name;
  report.goal = options.goal;
  report.file = options.file;
  double seconds = 0.0;
  const RunTasks run_tasks = tasks_shared_out(options.jobs);
  {
    Progress progress(0, "plans");
    report.search = search_plans(spaces, objectives, options.top, run_tasks, [&](const PlanSearch& search) {
      progress.advance_to(static_cast<std::size_t>(search.counts.plans), static_cast<std::size_t>(search.plans));
    });
    seconds = progress.elapsed_seconds();
  }
  const PlanSearch& search = report.search;
  warn(fmt::format("{} plans settled in {:.1f} s, {:.0f} a second", search.counts.plans, seconds,
                   static_cast<double>(search.counts.plans) / seconds));
  if (search.counts.exceeded > 0) {
    warn(fmt::format("{} estimates are below their bounds: the best plan is not proven", search.counts.exceeded));
  }
  report.ranked = ranked(search.best, spaces, hardware, objectives, options);
  report.misses = ranked(search.misses, spaces, hardware, objectives, options);
  if (!report.ranked.empty() && search.complete) draw_plans(report, run_tasks);
  finish(report);
  if (search.complete && !report.ranked.empty()) {
    report.better_batch = better_batch(report.ranked.front(), space, options, run_tasks);
  }
  return report;
}

ExitStatus run_plan(const PlanOptions& options) {
  const PlanReport report = searched(options);
  if (!options.output.empty()) write_file(options.output, to_csv(report));
  options.json ? print(to_json(report)) : print_page(to_text(report));
  return report.ranked.empty() ? ExitStatus::prediction_failed : ExitStatus::success;
}

}  // namespace

PlanDimensions plan_dimensions(const std::vector<std::string>& fixed) {
  PlanDimensions chosen = PlanDimensions::all();
  for (const std::string& key : fixed) {
    std::vector<std::string> keys = {"gpus_per_node"};
    bool known = is_gpus_per_node(key);
    for (std::size_t i = 0; i < plan_dimension_count; ++i) {
      const auto dimension = static_cast<PlanDimension>(i);
      const std::string_view full = key_of(dimension);
      keys.emplace_back(full.substr(full.rfind('.') + 1));
      if (key != full && key != keys.back()) continue;
      chosen.set(dimension, false);
      known = true;
    }
    if (!known) throw UsageError(fmt::format("--fix {}: plans differ in {}", key, or_list(keys, keys.size())));
  }
  return chosen;
}

PlanReport plan_report(const PlotOptions& options) {
  PlanOptions own;
  own.file = options.file();
  own.overrides = options.overrides;
  own.fidelity = options.fidelity;
  own.jobs = options.jobs;
  return searched(own);
}

void add_plan(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand("plan", "the best of all parallel plans that fit, and why others lose");
  command->add_option("FILE", options->file, "a scenario file, or a name from `foretrain scenarios list`")->required();
  const auto choose = [options](const std::string& word) {
    const std::optional<PlanGoal> goal = value_of<PlanGoal>(word);
    if (!goal)
      throw CLI::ValidationError("--objective", "there is no " + word + "; write time, cost, energy or memory");
    options->goal = *goal;
  };
  command->add_option_function<std::string>("--objective", choose, "what the best plan has least of (default: time)")
      ->type_name("time|cost|energy|memory");
  command->add_option("--within", options->within, "only plans that train the scenario's samples in this time")
      ->type_name("TIME");
  command->add_option("--fix", options->fixed, "keys that keep the scenario's value: tensor, micro_batch, …")
      ->type_name("KEY")
      ->delimiter(',');
  command
      ->add_option("--nodes", options->nodes, "numbers of nodes to compare: 8,16 or 8..64, each twice the one before")
      ->type_name("A..B");
  command->add_option("--node", options->node, "nodes to compare, each with its price in USD/GPU/hour if need be")
      ->type_name("NAME[@USD],…");
  command->add_option("--network", options->networks, "networks to compare: nic_bandwidth=200 Gbit/s,400 Gbit/s")
      ->type_name("KEY=VALUES");
  command->add_option("--top", options->top, "how many plans are ranked by simulation (default: 200)")
      ->type_name("N")
      ->check(CLI::Range(1, 10000).description(""));
  command->add_option("-o,--output", options->output, "the ranked plans as a table of cases")->type_name("OUT.csv");
  command->add_flag("--json", options->json, "JSON for programs");
  add_fidelity(*command, options->fidelity);
  add_overrides(*command, options->overrides);
  add_calibration(*command, options->calibration);
  add_jobs(*command, options->jobs);
  command->callback([options, &status] {
    if (!options->calibration.empty()) options->overrides.push_back("calibration=" + options->calibration);
    status = run_plan(*options);
  });
}

}  // namespace foretrain

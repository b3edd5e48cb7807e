#include "reports/cli/plan_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/base/text.hpp"
#include "model/base/words.hpp"
#include "model/planning/machine_use.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/command.hpp"
#include "reports/cli/options.hpp"
#include "reports/cli/shared_reports.hpp"
#include "reports/cli/vary.hpp"
#include "reports/export/exporter.hpp"

namespace foretrain {

namespace {

/// The longest step by which the training stays within the limits on these machines.
Seconds longest_step(const PlanLimits& limits, const Scenario& scenario) {
  Seconds training = limits.time.value_or(Seconds::infinity());
  if (!limits.any()) return training;
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  if (!train.training_samples) {
    throw UsageError(
        "--within and --budget: how long is the training? State workload.train.samples, such as 1 trillion tokens");
  }
  if (limits.usd) {
    const double usd = usd_per_second(scenario.cluster);
    if (!(usd > 0.0)) {
      throw UsageError("--budget: no price; state cluster.price: 2.5 USD/GPU/hour, or --node NAME@2.5");
    }
    training = std::min(training, Seconds(*limits.usd / usd));
  }
  return training * (static_cast<double>(train.global_batch) / *train.training_samples);
}

/// "dgx-h100@2.5" → the node and what one of its GPUs costs an hour.
std::vector<std::string> node_overrides(const std::string& node) {
  const std::size_t at = node.find('@');
  std::vector<std::string> overrides = {"cluster.node=" + node.substr(0, at)};
  if (at != std::string::npos) overrides.push_back(fmt::format("cluster.price={} USD/GPU/hour", node.substr(at + 1)));
  return overrides;
}

}  // namespace

double watts_of(const Cluster& cluster) {
  return cluster.node.gpu.board_power_watts * cluster.node.gpus * cluster.nodes;
}
double usd_per_second(const Cluster& cluster) {
  return cluster.usd_per_gpu_hour.value_or(0.0) * cluster.gpus() / 3600.0;
}

PlanObjective objective_of(const PlanAim& aim, const Scenario& scenario) {
  PlanObjective objective{aim.goal};
  const Cluster& cluster = scenario.cluster;
  if (aim.goal == PlanGoal::cost) {
    if (!cluster.usd_per_gpu_hour) {
      throw UsageError("--objective cost: no price; state cluster.price: 2.5 USD/GPU/hour, or --node NAME@2.5");
    }
    objective.per_second = usd_per_second(cluster);
  }
  if (aim.goal == PlanGoal::energy) {
    if (!(watts_of(cluster) > 0.0)) {
      throw UsageError(fmt::format("--objective energy: no board power is known of {}", cluster.node.gpu.name));
    }
    objective.per_second = watts_of(cluster);
  }
  objective.limit = longest_step(aim.limits, scenario);
  return objective;
}

bool is_gpus_per_node(std::string_view key) { return key == "gpus_per_node" || key == "cluster.gpus_per_node"; }

PlanDimensions plan_dimensions(const std::vector<std::string>& fixed, const std::vector<std::string>& allowed) {
  PlanDimensions chosen = PlanDimensions::all();
  chosen.allow_all(false);
  for (const std::string& word : allowed) {
    const std::optional<PlanExtra> extra = value_of<PlanExtra>(word);
    if (!extra) {
      throw UsageError(fmt::format("--allow {}: there are {}", word, fmt::join(names_of<PlanExtra>, ", ")));
    }
    chosen.allow(*extra);
  }
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

bool is_short_of_memory(const PlanSearch& search, const PlanDimensions& chosen, PlanGoal goal) {
  constexpr double nearly_all = 0.9;
  const PlanCounts& counts = search.counts;
  const bool few_fit = static_cast<double>(counts.unfit) > nearly_all * static_cast<double>(counts.plans);
  const bool could_help = chosen.has(PlanDimension::offload) && !chosen.allows(PlanExtra::offload);
  if (!search.complete || !could_help) return false;
  return search.best.empty() || (few_fit && goal != PlanGoal::memory);
}

std::optional<double> times_as_long(const PlanSearch& plain, const PlanSearch& other) {
  constexpr double worth_it = 2.0;
  if (other.best.empty()) return std::nullopt;
  if (plain.best.empty()) return std::numeric_limits<double>::infinity();
  const double times = plain.best.front().value / other.best.front().value;
  return times > worth_it ? std::optional(times) : std::nullopt;
}

std::vector<Hardware> hardware_of(const HardwareChoice& choice) {
  std::vector<Variation> variations;
  if (!choice.node.empty()) variations.push_back(parse_variation("cluster.node=" + choice.node));
  if (!choice.nodes.empty()) {
    const bool stepped = choice.nodes.find_first_of("x+,") != std::string::npos;
    const bool range = choice.nodes.find("..") != std::string::npos;
    variations.push_back(parse_variation("cluster.nodes=" + choice.nodes + (range && !stepped ? "x2" : "")));
    for (const std::string& nodes : variations.back().values) {
      if (std::atof(nodes.c_str()) <= static_cast<double>(most_nodes)) continue;
      throw UsageError(fmt::format("--nodes {}: {} nodes; at most {}", choice.nodes, nodes, most_nodes));
    }
  }
  for (const std::string& text : choice.networks) variations.push_back(parse_variation("cluster.network." + text));
  std::vector<Hardware> all(1);
  for (const Variation& variation : variations) {
    std::vector<Hardware> longer;
    for (const Hardware& so_far : all) {
      for (const std::string& value : variation.values) {
        Hardware next = so_far;
        const std::string change = fmt::format("{}={}", variation.key, value);
        const auto changes = variation.key == "cluster.node" ? node_overrides(value) : std::vector{change};
        next.machines.insert(next.machines.end(), changes.begin(), changes.end());
        const std::string word = variation.key == "cluster.nodes" ? value + (value == "1" ? " node" : " nodes") : value;
        next.label += (next.label.empty() ? "" : ", ") + word;
        next.name = next.label;
        longer.push_back(std::move(next));
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<Hardware> uses_of(const Hardware& hardware, const std::string& file,
                              const std::vector<std::string>& overrides, bool all_alone) {
  std::vector<MachineUse> uses = machine_uses(scenario_document(file, overrides));
  if (all_alone) uses.resize(1);
  std::vector<Hardware> all;
  for (const MachineUse& use : uses) {
    Hardware& one = all.emplace_back(hardware);
    one.overrides = hardware.machines;
    one.all_gpus = uses.front().used;
    one.overrides.insert(one.overrides.end(), use.overrides.begin(), use.overrides.end());
    if (uses.size() == 1) continue;
    one.label +=
        fmt::format("{}{} GPUs of each", one.label.empty() ? "" : ", ",
                    use.used == use.of ? fmt::format("all {}", use.of) : fmt::format("{} of {}", use.used, use.of));
  }
  return all;
}

bool fix_lacking(const std::string& exporter, PlanDimensions& chosen) {
  bool fixed = false;
  const auto writes = std::ranges::find(exporters(), exporter, &Exporter::word);
  for (std::size_t i = 0; i < plan_dimension_count && writes != exporters().end(); ++i) {
    const auto dimension = static_cast<PlanDimension>(i);
    if (!writes->never_has(key_of(dimension))) continue;
    chosen.set(dimension, false);
    fixed = true;
  }
  return fixed;
}

void keep_plans_of(const std::string& exporter, const std::vector<PlanSpace>& spaces,
                   std::vector<PlanCandidate>& best) {
  const auto writes = std::ranges::find(exporters(), exporter, &Exporter::word);
  if (writes == exporters().end() || best.empty()) return;
  std::vector<PlanCandidate> kept;
  std::set<std::string> lacking;
  for (const PlanCandidate& plan : best) {
    const PlanSpace& space = spaces[at_index(plan.space)];
    const std::vector<std::string> chosen = space.overrides(plan.point);
    std::multimap<std::string, std::string> lacks;
    try {
      lacks = export_scenario(*writes, space.read(plan.point)).lacking;
    } catch (const ScenarioError&) {
      return;  // a model that its files do not describe
    }
    std::erase_if(lacks, [&](const auto& one) {
      const auto is_of_key = [&](const std::string& override) { return override.starts_with(one.first + "="); };
      return !one.first.empty() && std::ranges::none_of(chosen, is_of_key);
    });
    if (lacks.empty()) kept.push_back(plan);
    if (!kept.empty()) continue;
    for (const auto& [key, line] : lacks) lacking.insert(line);
  }
  if (lacking.empty()) return;
  warn(fmt::format("{} {} not have: {}", exporter, kept.empty() ? "may" : "does", fmt::join(lacking, "; ")));
  if (!kept.empty()) best = std::move(kept);
}

}  // namespace foretrain

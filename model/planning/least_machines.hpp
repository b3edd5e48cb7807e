// The number of machines that a training needs for some plan to fit their GPUs' memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "model/planning/plan_space.hpp"

namespace foretrain {

/// Machines of one kind; of each as many GPUs train as are stated, or all.
struct MachineCount {
  int nodes = 1, gpus_per_node = 1;
  bool all_gpus = true;
  [[nodiscard]] std::int64_t gpus() const { return std::int64_t{1} * nodes * gpus_per_node; }
};

/// A scenario on so many machines; nothing where it cannot be written for them.
using ScenarioOn = std::function<std::optional<YamlNode>(const MachineCount&)>;

/// The least of these numbers on which some plan of the chosen dimensions fits: 1, 2, … GPUs of one machine, where
/// `parts` says so, then 1, 2, … machines, of which `machine` is one. Numbers that cannot hold weights, gradients and
/// the optimizer's states together are passed over. Nothing where none up to twice the number is enough that could hold
/// these.
std::optional<MachineCount> least_machines(const ScenarioOn& scenario_on, const PlanDimensions& chosen,
                                           const MachineCount& machine, bool parts);

/// The same for the machines of a scenario's cluster, whose number alone changes.
std::optional<MachineCount> least_machines(const YamlNode& document, const PlanDimensions& chosen,
                                           const Cluster& cluster);

}  // namespace foretrain

// Objective of a plan search, the plans that a framework can run, the price of a second on some machines, and the
// machines to compare: node types, numbers, networks and GPUs used per machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/planning/plan_search.hpp"
#include "model/scenario/scenario.hpp"
#include "reports/studies/plan_limits.hpp"

namespace foretrain {

struct PlanAim {
  PlanGoal goal = PlanGoal::time;
  PlanLimits limits;
};

/// All boards of the machines: idle ones are powered, too, and none is known to take less.
double watts_of(const Cluster& cluster);
/// 0 without a price.
double usd_per_second(const Cluster& cluster);

/// Throws UsageError where the scenario does not say what the aim needs: a price, a power, how long the training is.
PlanObjective objective_of(const PlanAim& aim, const Scenario& scenario);

/// A key of --fix that is no dimension of plans.
bool is_gpus_per_node(std::string_view key);

/// Whether hardly any plan fits, so that those which do may be far from what a team would run, and offloading is not
/// searched yet.
bool is_short_of_memory(const PlanSearch& search, const PlanDimensions& chosen, PlanGoal goal);

/// Time of the best plan over that of another search; nothing where the other is not worth what it needs.
std::optional<double> times_as_long(const PlanSearch& plain, const PlanSearch& other);

/// Hardware that the user compares.
struct HardwareChoice {
  std::string nodes;                  ///< "8..64"
  std::string node;                   ///< "dgx-h100@2.5,dgx-b200@4"
  std::vector<std::string> networks;  ///< "nic_bandwidth=200 Gbit/s,400 Gbit/s"
};

/// One kind of hardware, and the values by which it differs from the scenario's.
struct Hardware {
  std::vector<std::string> machines;   ///< overrides that say which these are
  std::vector<std::string> overrides;  ///< these, and how many of their GPUs train
  std::string label;
  int all_gpus = 0;  ///< of a machine that may train
  std::string name;  ///< the label without how many of their GPUs train
};

/// All combinations of nodes, their number and networks; one without anything where nothing varies. Throws UsageError.
std::vector<Hardware> hardware_of(const HardwareChoice& choice);

/// The same machines of a scenario, with all their GPUs or fewer; with all alone where the user fixes that.
std::vector<Hardware> uses_of(const Hardware& hardware, const std::string& file,
                              const std::vector<std::string>& overrides, bool all_alone);

/// Keeps the scenario's values of keys that the framework's files, which `exporter` writes, never have. False where
/// there are none.
bool fix_lacking(const std::string& exporter, PlanDimensions& chosen);

/// Leaves out of the best plans those with settings that the framework's files, which `exporter` writes, cannot have,
/// and warns. A framework that has none of them keeps them all.
void keep_plans_of(const std::string& exporter, const std::vector<PlanSpace>& spaces, std::vector<PlanCandidate>& best);

}  // namespace foretrain

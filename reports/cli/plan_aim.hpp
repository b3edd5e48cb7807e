// What a search for plans aims at, and what a second of a step costs on some machines.
#pragma once

#include <optional>
#include <string_view>

#include "model/planning/plan_objective.hpp"
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

/// How much longer the best plan takes than that of another search; nothing where the other is not worth what it needs.
std::optional<double> times_as_long(const PlanSearch& plain, const PlanSearch& other);

}  // namespace foretrain

// What a search for plans aims at, and what a second of a step costs on some machines.
#pragma once

#include "model/planning/plan_objective.hpp"
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

}  // namespace foretrain

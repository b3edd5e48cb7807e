// The effect of each unknown on a step, and tasks for other processes.
#pragma once

#include <vector>

#include "model/planning/plan_search.hpp"
#include "reports/explain/what_if.hpp"
#include "reports/studies/plan_report.hpp"

namespace foretrain {

/// Of each unknown of a scenario whose step is estimated as `unchanged`. One that leaves the scenario as it is costs no
/// prediction.
std::vector<Effect> effects_of(Seconds unchanged, const std::vector<UncertainResource>& unknown);

/// Tasks are shared out among `workers` processes; answers that have not come when the user interrupts stay empty. It
/// throws std::runtime_error with the message of a task that failed.
RunTasks tasks_shared_out(int workers);

/// Confidence of a plan search: estimates the ranked plans with every unknown a standard deviation better and worse,
/// and draws them (set_odds()). The best 64 of those that are slower than the best one by no more than these could make
/// up for. Nothing where memory is the goal, or no plan fits.
void draw_plans(PlanReport& report, const RunTasks& run_tasks);

}  // namespace foretrain

// How sure a search for plans is: what each figure that is not known would make of the best ones' steps.
#pragma once

#include "reports/studies/plan_report.hpp"

namespace foretrain {

/// Estimates the ranked plans with every unknown a standard deviation better and worse, and draws them (set_odds()):
/// the best 64 of those that are slower than the best one by no more than these could make up for. Nothing where memory
/// is the goal, or no plan fits.
void draw_plans(PlanReport& report, const RunTasks& run_tasks);

}  // namespace foretrain

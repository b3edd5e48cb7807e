// The best of all plans, over one or several kinds of hardware: layouts are settled in rounds, the most promising
// first, each round with what the rounds before have found. What comes out does not depend on the number of workers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model/planning/layout_search.hpp"
#include "model/planning/plan_space.hpp"

namespace foretrain {

/// Carries out tasks 0 … count − 1 in any order, here or in other processes, and returns their answers in the order of
/// their numbers. An answer may be empty where the user has interrupted the work.
using RunTasks =
    std::function<std::vector<std::string>(std::size_t count, const std::function<std::string(std::size_t)>& task)>;
/// One after the other, here.
std::vector<std::string> run_tasks_here(std::size_t count, const std::function<std::string(std::size_t)>& task);

struct PlanSearch {
  PlanCounts counts;       ///< plans that are settled
  std::int64_t plans = 0;  ///< in the whole space
  std::size_t layouts = 0;
  std::size_t settled = 0;                      ///< layouts, those among them that cannot hold one of the best plans
  bool complete = true;                         ///< else the user has interrupted the search
  std::vector<PlanCandidate> best, infeasible;  ///< the best first
};

/// `objectives`: one for each space. `progress`: called after each round with what is done.
PlanSearch search_plans(
    const std::vector<PlanSpace>& spaces, const std::vector<PlanObjective>& objectives, std::size_t kept,
    const RunTasks& run_tasks = run_tasks_here,
    const std::function<void(const PlanSearch&)>& progress = [](const PlanSearch&) {});

/// Step time of a scenario, by the caller's executor.
using StepTimeOf = std::function<Seconds(const Scenario&)>;

/// Values of the keys that a document leaves to `auto`, as for --set: the plan that is best of the `finalists` best by
/// estimate. Throws ScenarioError where no plan fits.
std::vector<std::string> auto_overrides(const YamlNode& document, const std::string& name, const StepTimeOf& step_time,
                                        std::size_t finalists);

}  // namespace foretrain

#include "model/planning/auto_plan.hpp"

#include "model/planning/plan_search.hpp"

namespace foretrain {

PlanDimensions auto_dimensions(const YamlNode& document) {
  using enum PlanDimension;
  PlanDimensions chosen;
  for (const PlanDimension dimension : {tensor, context, expert, pipeline, data, micro_batch, recompute, zero}) {
    const YamlNode* value = document.at(key_of(dimension));
    if (value != nullptr && value->is_scalar() && value->scalar == "auto") chosen.set(dimension);
  }
  if (chosen.any() && document.at(key_of(data)) == nullptr) chosen.set(data);
  return chosen;
}

Scenario read_planned_scenario(const YamlNode& document, const std::string& name, const StepTimeOf& step_time,
                               std::size_t finalists) {
  const PlanDimensions chosen = auto_dimensions(document);
  if (!chosen.any()) return read_scenario(document, name);
  std::vector<PlanSpace> spaces;
  spaces.emplace_back(document, name, chosen);
  const PlanSearch search = search_plans(spaces, {PlanObjective{}}, finalists);
  if (search.best.empty()) {
    throw ScenarioError(document.where, "plan", "no plan fits the GPUs' memory",
                        "auto for more keys, more nodes or a smaller model");
  }
  Scenario best = spaces.front().read(search.best.front().point);
  if (search.best.size() == 1) return best;
  Seconds least = step_time(best);
  for (std::size_t i = 1; i < search.best.size(); ++i) {
    Scenario other = spaces.front().read(search.best[i].point);
    const Seconds time = step_time(other);
    if (!(time < least)) continue;
    least = time;
    best = std::move(other);
  }
  return best;
}

}  // namespace foretrain

#include "model/planning/plan_search.hpp"

#include <fmt/format.h>

#include "model/planning/least_machines.hpp"

namespace foretrain {

namespace {

/// The dimensions for which the document says `auto`, and data where it says nothing.
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

}  // namespace

std::vector<std::string> auto_overrides(const YamlNode& document, const std::string& name, const StepTimeOf& step_time,
                                        std::size_t finalists) {
  const PlanDimensions dimensions = auto_dimensions(document);
  if (!dimensions.any()) return {};
  std::vector<PlanSpace> spaces;
  spaces.emplace_back(document, name, dimensions);
  const PlanSpace& space = spaces.front();
  const PlanSearch search = search_plans(spaces, {PlanObjective{}}, finalists);
  if (search.best.empty()) {
    const auto least = least_machines(document, dimensions, space.example().cluster);
    throw ScenarioError(document.where, "plan", "no plan fits the GPUs' memory",
                        fmt::format("auto for more keys, {} or a smaller model",
                                    least ? fmt::format("nodes: {}", least->nodes) : "more nodes"));
  }
  PlanPoint chosen = search.best.front().point;
  Seconds least = Seconds::infinity();
  for (std::size_t i = 0; search.best.size() > 1 && i < search.best.size(); ++i) {
    const Seconds time = step_time(space.read(search.best[i].point));
    if (!(time < least)) continue;
    least = time;
    chosen = search.best[i].point;
  }
  return space.overrides(chosen);
}

}  // namespace foretrain

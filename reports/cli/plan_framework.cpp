#include "reports/cli/plan_framework.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "reports/cli/options.hpp"
#include "reports/export/exporter.hpp"

namespace foretrain {

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

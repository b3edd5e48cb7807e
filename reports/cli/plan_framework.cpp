#include "reports/cli/plan_framework.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "reports/cli/options.hpp"
#include "reports/export/exporter.hpp"

namespace foretrain {

namespace {

/// Whether a file cannot have what the search chose, and it is in use. DeepSpeed's and Accelerate's files leave the
/// rest to the training's code.
bool is_lacking(const std::string& line, const std::vector<std::string>& chosen, std::string_view exporter) {
  static constexpr std::string_view off[] = {": 1", ": 0", ": false", ": none", ": auto", ": automatic"};
  static constexpr std::string_view ranks[] = {"plan.tensor", "plan.context", "plan.pipeline", "plan.expert"};
  const std::string key = line.substr(0, line.find(": "));
  const auto* const place = std::ranges::find(ranks, key);
  if (line.starts_with("a plan that")) return true;
  if (exporter == "deepspeed" && place >= std::begin(ranks) + 2) return false;
  if (exporter == "accelerate" && place == std::end(ranks)) return false;
  return std::ranges::any_of(chosen, [&](const std::string& one) { return one.starts_with(key + "="); }) &&
         std::ranges::none_of(off, [&](std::string_view end) { return line.ends_with(end); });
}

}  // namespace

void keep_plans_of(const std::string& exporter, const std::vector<PlanSpace>& spaces,
                   std::vector<PlanCandidate>& best) {
  constexpr std::size_t enough = 10;
  const auto writes = std::ranges::find(exporters(), exporter, &Exporter::word);
  if (writes == exporters().end() || best.empty()) return;
  std::vector<PlanCandidate> kept;
  std::set<std::string> lacking;
  for (auto plan = best.begin(); plan != best.end(); ++plan) {
    if (kept.size() == enough) {
      kept.insert(kept.end(), plan, best.end());
      break;
    }
    const PlanSpace& space = spaces[at_index(plan->space)];
    std::vector<std::string> unsaid;
    try {
      unsaid = export_scenario(*writes, space.read(plan->point)).unsaid;
    } catch (const ScenarioError&) {
      return;  // a model that its files do not describe
    }
    const std::vector<std::string> chosen = space.overrides(plan->point);
    std::erase_if(unsaid, [&](const std::string& line) { return !is_lacking(line, chosen, exporter); });
    if (unsaid.empty()) kept.push_back(*plan);
    if (kept.empty()) lacking.insert(unsaid.begin(), unsaid.end());
  }
  if (lacking.empty()) return;
  warn(fmt::format("{} {} not have: {}", exporter, kept.empty() ? "may" : "does", fmt::join(lacking, "; ")));
  if (!kept.empty()) best = std::move(kept);
}

}  // namespace foretrain

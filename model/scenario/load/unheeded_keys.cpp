#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/base/words.hpp"
#include "model/scenario/load/checks.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

std::vector<std::string> unheeded_keys(const Scenario& scenario) {
  static constexpr std::pair<std::string_view, const keys::Mapping*> mappings[] = {{"cluster.network", &keys::network},
                                                                                   {"cluster", &keys::cluster},
                                                                                   {"plan", &keys::plan},
                                                                                   {"plan.sync", &keys::sync},
                                                                                   {"workload.train", &keys::train}};
  const Plan& plan = scenario.plan;
  const keys::Situation situation{scenario.cluster, plan, std::get_if<TrainWorkload>(&scenario.workload),
                                  scenario.background.empty() && scenario.jobs.empty()};
  const auto holds = [&](const keys::Ignored* reason) { return reason != nullptr && reason->in(situation); };
  std::vector<std::string> sentences;
  for (const auto& [path, table] : mappings) {
    const YamlNode* stated = scenario.where.document.at(path);
    if (stated == nullptr) continue;
    for (const keys::Key& key : table->keys) {
      if (key.ignored.front() == nullptr || stated->find(key.name) == nullptr) continue;
      const auto reason = std::ranges::find_if(key.ignored, holds);
      if (reason == key.ignored.end()) continue;
      const std::string why = fmt::format(fmt::runtime((*reason)->why), fmt::arg("zero", plan.zero),
                                          fmt::arg("execution", name(plan.execution)));
      sentences.push_back(fmt::format("{} changes nothing: {}", join_path(path, key.name), why));
    }
  }
  return sentences;
}

}  // namespace foretrain

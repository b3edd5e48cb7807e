#include "reports/cli/plan_hardware.hpp"

#include <fmt/format.h>

#include <utility>

#include "model/planning/machine_use.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/vary.hpp"

namespace foretrain {

namespace {

/// "dgx-h100@2.5" → the node and what one of its GPUs costs an hour.
std::vector<std::string> node_overrides(const std::string& node) {
  const std::size_t at = node.find('@');
  std::vector<std::string> overrides = {"cluster.node=" + node.substr(0, at)};
  if (at != std::string::npos) overrides.push_back(fmt::format("cluster.price={} USD/GPU/hour", node.substr(at + 1)));
  return overrides;
}

}  // namespace

std::vector<Hardware> hardware_of(const HardwareChoice& choice) {
  std::vector<Variation> variations;
  if (!choice.node.empty()) variations.push_back(parse_variation("cluster.node=" + choice.node));
  if (!choice.nodes.empty()) {
    const bool stepped = choice.nodes.find_first_of("x+,") != std::string::npos;
    const bool range = choice.nodes.find("..") != std::string::npos;
    variations.push_back(parse_variation("cluster.nodes=" + choice.nodes + (range && !stepped ? "x2" : "")));
  }
  for (const std::string& text : choice.networks) variations.push_back(parse_variation("cluster.network." + text));
  std::vector<Hardware> all(1);
  for (const Variation& variation : variations) {
    std::vector<Hardware> longer;
    for (const Hardware& so_far : all) {
      for (const std::string& value : variation.values) {
        Hardware next = so_far;
        const std::string change = fmt::format("{}={}", variation.key, value);
        const auto changes = variation.key == "cluster.node" ? node_overrides(value) : std::vector{change};
        next.machines.insert(next.machines.end(), changes.begin(), changes.end());
        const std::string word = variation.key == "cluster.nodes" ? value + (value == "1" ? " node" : " nodes") : value;
        next.label += (next.label.empty() ? "" : ", ") + word;
        next.name = next.label;
        longer.push_back(std::move(next));
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<Hardware> uses_of(const Hardware& hardware, const std::string& file,
                              const std::vector<std::string>& overrides, bool all_alone) {
  std::vector<MachineUse> uses = machine_uses(scenario_document(file, overrides));
  if (all_alone) uses.resize(1);
  std::vector<Hardware> all;
  for (const MachineUse& use : uses) {
    Hardware& one = all.emplace_back(hardware);
    one.all_gpus = uses.front().used;
    one.overrides = hardware.machines;
    one.overrides.insert(one.overrides.end(), use.overrides.begin(), use.overrides.end());
    if (uses.size() == 1) continue;
    one.label +=
        fmt::format("{}{} GPUs of each", one.label.empty() ? "" : ", ",
                    use.used == use.of ? fmt::format("all {}", use.of) : fmt::format("{} of {}", use.used, use.of));
  }
  return all;
}

}  // namespace foretrain

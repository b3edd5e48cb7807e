#include "validate/learn/likely.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/plan/trainer_reader.hpp"

namespace foretrain {

namespace {

constexpr std::string_view scaling_names = "cluster.network.scaling.";

double value_of(const Field& text, const StackParameter& parameter) {
  if (parameter.constant != nullptr) return read_constant_value(text, *parameter.constant);
  switch (parameter.scale) {
    case StackParameter::Scale::share:
      return learned_share(text);
    case StackParameter::Scale::time:
      return text.as<Seconds>({.zero = Zero::allowed}).value();
    default:
      return text.as<double>();
  }
}

/// All settings that a file with these names may speak of.
std::vector<StackParameter> parameters_of(const YamlNode& likely, const Scenario& usual) {
  RunsAtHand runs{.nodes = {}, .pipelined = true, .usual = &usual};
  for (const YamlEntry& entry : likely.entries) {
    if (entry.key.starts_with(scaling_names)) runs.nodes.push_back(std::atoi(&entry.key[scaling_names.size()]));
  }
  return stack_parameters(runs);
}

}  // namespace

std::vector<LikelySetting> likely_settings(const MappingReader& stack, const Scenario& usual) {
  const std::string remedy = "a file that `foretrain learn` of this version wrote";
  const auto learned = stack.find("learned");
  if (!learned) stack.fail("kind", "not a settings profile: nothing was learned from runs", remedy);
  const auto likely = learned->mapping(keys::learned).find("likely");
  if (!likely) learned->fail("no intervals of its settings", remedy);
  const std::vector<StackParameter> parameters = parameters_of(likely->node(), usual);
  std::vector<LikelySetting> settings;
  for (const YamlEntry& entry : likely->node().entries) {
    const Field field(entry.value, join_path(likely->path(), entry.key));
    const auto known = std::ranges::find(parameters, entry.key, &StackParameter::name);
    if (known == parameters.end()) field.fail("no setting that runs teach", remedy);
    const std::vector<Field> values = field.list();
    if (values.size() != 2) field.fail("no two values", "[ low, high ]");
    settings.push_back({*known, value_of(values[0], *known), value_of(values[1], *known)});
  }
  return settings;
}

}  // namespace foretrain

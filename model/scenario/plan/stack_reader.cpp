#include "model/scenario/plan/stack_reader.hpp"

#include <algorithm>
#include <utility>

#include "model/base/units.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/overrides.hpp"
#include "model/scenario/plan/trainer_reader.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

namespace {

/// A part of the file of the scenario's trainer.
std::optional<Field> part_of_trainer(const YamlNode& document, std::string_view part) {
  const YamlNode* named = document.at("plan.trainer");
  if (named == nullptr) return std::nullopt;
  return named_trainer(Field(*named, "plan.trainer")).find(part);
}

}  // namespace

double learned_share(const Field& field) {
  return field.parse([](const std::string& text) { return split_number_and_unit(text); }).number / 100.0;
}

std::optional<StackedScenario> with_learned_cluster(const YamlNode& document) {
  const auto cluster = part_of_trainer(document, "cluster");
  if (!cluster) return std::nullopt;
  StackedScenario result{document, {}};
  const MappingReader figures = cluster->mapping(keys::learned_cluster);
  for (const keys::Key& row : keys::learned_cluster.keys) {
    const auto figure = figures.find(row.name);
    const std::string key = join_path("cluster", row.name);
    if (!figure || document.at(key) != nullptr) continue;
    const MappingReader habit = figure->mapping(keys::habit);
    apply_override(result.document, {key, habit["value"].text(), habit["value"].where()});
    result.figures.push_back(habit_provenance(key, habit));
  }
  return result;
}

void adopt_learned_constants(const YamlNode& document, Calibration& calibration) {
  const auto constants = part_of_trainer(document, "constants");
  if (constants) adopt_constants(*constants, keys::constant, calibration);
}

std::optional<LearnedRange> learned_range(const YamlNode& document) {
  const auto learned = part_of_trainer(document, "learned");
  if (!learned) return std::nullopt;
  const MappingReader keys = learned->mapping(keys::learned);
  const std::vector<Field> nodes = keys["nodes"].list();
  if (nodes.size() != 2) keys.fail("nodes", "no two numbers", "[ the least, the most ]");
  const auto memory = keys.find("memory_shortfall");
  return LearnedRange{learned_share(keys["spread"]), memory ? learned_share(*memory) : 0.0,
                      static_cast<int>(nodes[0].integer()), static_cast<int>(nodes[1].integer())};
}

}  // namespace foretrain

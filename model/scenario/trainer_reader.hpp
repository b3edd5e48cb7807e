// scenarios/trainers/*.yaml: what a trainer (Megatron-LM, DistributedDataParallel, …) does unless it is told otherwise.
// A file maps keys of a scenario to habits: `plan.sync.overlap: { value: false, when: { zero: [0, 1, 2] }, kind:
// datasheet, source: "…" }`. `when` limits a habit to levels of plan.zero, or to plans with or without parameter
// servers (`servers: true`).
#pragma once

#include <vector>

#include "model/base/constant.hpp"
#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// A scenario with its trainer's habits.
struct TrainedScenario {
  YamlNode document;
  std::vector<Constant> habits;  ///< those that were added, each with its source
};

/// Whether the scenario trains and names a trainer (`plan.trainer`), or trains as only one of them can.
bool has_trainer(const YamlNode& document);

/// The scenario with the habits of its trainer for the keys that it leaves out. They keep their own positions, so that
/// complaints about them name the trainer's file. Left out are habits that `when:` limits to other plans, those of
/// parameter servers where there are none, and `kernels` for a network, which has none to choose. Throws ScenarioError
/// for an unknown trainer and for a file that states what no trainer decides.
TrainedScenario with_trainer(const YamlNode& document);

}  // namespace foretrain

// A software stack that was learned from its runs (`foretrain learn`): a trainer's file that says, beside habits, what
// its runs taught of the cost models' constants and of the cluster that they ran on.
#pragma once

#include <optional>
#include <vector>

#include "model/cost/calibration.hpp"
#include "model/scenario/scenario.hpp"
#include "model/scenario/yaml_document.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// A scenario with the figures of its trainer's cluster where it states none.
struct StackedScenario {
  YamlNode document;
  std::vector<Constant> figures;  ///< those that were put in, for its provenance
};
/// Nothing where the scenario's trainer knows of no cluster.
std::optional<StackedScenario> with_learned_cluster(const YamlNode& document);

/// Puts the constants that the trainer of the scenario learned in the place of the calibration's. Throws ScenarioError
/// for an unknown constant and for a value out of bounds.
void adopt_learned_constants(const YamlNode& document, Calibration& calibration);

/// "37.1 %" of such a file as 0.371.
double learned_share(const Field& field);

/// Nothing where the trainer of the scenario was not learned.
std::optional<LearnedRange> learned_range(const YamlNode& document);

}  // namespace foretrain

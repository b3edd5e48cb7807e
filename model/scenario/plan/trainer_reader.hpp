// scenarios/frameworks/*.yaml: settings of Megatron-LM, DistributedDataParallel, … for keys that a scenario leaves out.
// A file maps keys of a scenario to settings, or to a list of them for different trainings (keys::trainer). What it
// does not say, `default_trainer`'s does. One that `foretrain learn` wrote says as well what its runs taught of the
// cost models' constants and of their cluster.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/constant.hpp"
#include "model/cost/calibration.hpp"
#include "model/hardware/cluster.hpp"
#include "model/scenario/scenario.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// The file of the trainer that the field names: from the catalogue, or a path. Throws ScenarioError where there is
/// none, or another kind of file.
MappingReader named_trainer(const Field& name);

/// The framework whose settings are the defaults: one file, the same for all formats, ZeRO stages and machines.
inline constexpr const char* default_trainer = "tuned";
inline constexpr const char* own_code = "own-code";  ///< kernels stated, no trainer named

/// Settings of a training's framework that the scenario leaves out.
struct Framework {
  std::string name;
  std::vector<ResolvedSetting> settings;  ///< stated, of the trainer and assumed, that the scenario's plan can have
  std::vector<Constant> constants;        ///< what the trainer named by the scenario does, for its provenance
  std::vector<std::pair<std::string, SourcePosition>> where;  ///< the keys that these set, and where they are written

  /// Whether the scenario, its trainer or what is assumed says something of the key.
  [[nodiscard]] bool decides(std::string_view key) const {
    return std::ranges::find(settings, key, &ResolvedSetting::key) != settings.end();
  }
};

/// Sets what the training and its plan leave out: as the trainer does that the scenario names, else as is assumed. Left
/// out are settings that `when:` limits to other plans and those that mean nothing here.
Framework apply_framework(const YamlNode& document, const Cluster& cluster, TrainWorkload& train, Plan& plan);

/// Puts the figures of its trainer's cluster into a scenario that states none; those that were put in, for its
/// provenance.
std::vector<Constant> add_learned_cluster(YamlNode& document);

/// Puts the constants that the trainer of the scenario learned in the place of the calibration's. Throws ScenarioError
/// for an unknown constant and for a value out of bounds.
void adopt_learned_constants(const YamlNode& document, Calibration& calibration);

/// "37.1 %" of such a file as 0.371.
double learned_share(const Field& field);

/// Nothing where the trainer of the scenario was not learned.
std::optional<LearnedRange> learned_range(const YamlNode& document);

/// The largest data, tensor and pipeline group of the runs that the trainer was learned from; none where it does not
/// say.
std::vector<int> learned_groups(const YamlNode& document);

}  // namespace foretrain

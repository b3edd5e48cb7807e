// A learned stack as a trainer's file, and as a table for people; the file's intervals of settings, read back.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "model/scenario/yaml_reader.hpp"
#include "validate/learn/learn.hpp"
#include "validate/learn/parameters.hpp"

namespace foretrain {

/// The runs behind a profile, and the framework of all other settings.
struct LearnedFrom {
  std::string table;
  std::string base;                ///< a trainer's name or file
  std::vector<std::string> names;  ///< of the runs
  std::vector<int> nodes;          ///< of each
  std::array<int, 3> groups = {};  ///< the largest data, tensor and pipeline group
  /// Rows that could not be used, and why.
  std::vector<std::pair<std::string, std::string>> failed = {};
};

/// The trainer's file: settings of the base with what was learned in their place; constants; the cluster's figures;
/// from what it was learned. Throws ScenarioError where there is no such base.
std::string stack_file(const LearnedStack& stack, const LearnedFrom& from);

/// The same for programs: numbers in base units, errors as shares, every run's, and the trainer's file as `stack`.
std::string to_json(const LearnedStack& stack, const LearnedFrom& from);

/// Learned values with their uncertainty, and prediction errors, before and after.
std::string to_text(const LearnedStack& stack, const LearnedFrom& from);

/// A setting that moves a step, one standard deviation to either side of what was learned: `low` and `high` as
/// StackParameter::value() has them.
struct LikelySetting {
  StackParameter parameter;
  double low = 0.0, high = 0.0;
};

/// Settings of a framework file, in its order. `usual`: a scenario of the stack. Throws ScenarioError for a file that
/// was not learned or has no intervals, for a setting that is none and for bad values.
std::vector<LikelySetting> likely_settings(const MappingReader& stack, const Scenario& usual);

}  // namespace foretrain

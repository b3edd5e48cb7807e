// Keys that no table has: all of a file are told at once, each with the key that was probably meant.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// Several complaints about one file. It is the first of them; what() has a line for each.
class UnknownKeys : public ScenarioError {
 public:
  /// `complaints` is not empty.
  explicit UnknownKeys(std::vector<ScenarioError> complaints);
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] const std::vector<ScenarioError>& complaints() const { return complaints_; }

 private:
  std::vector<ScenarioError> complaints_;
  std::string text_;
};

/// A complaint for every key of the mapping, and of what is in it, that is not known there; those of the mapping itself
/// first. `path` is the mapping's.
std::vector<ScenarioError> unknown_keys(const YamlNode& mapping, const std::string& path,
                                        std::span<const keys::Key* const> known);

/// Throws the error that a reader of the scenario threw, and with it what else is unknown in the document.
[[noreturn]] void throw_with_unknown_keys(const ScenarioError& error, const YamlNode& scenario);

}  // namespace foretrain

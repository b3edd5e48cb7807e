// A document beside the tables of its keys: every mapping in it, with what may stand there; names and values that stay
// accepted (keys/foreign_names.def), by those of today; keys that no table has, all of a file at once.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/yaml_document.hpp"

namespace foretrain {

struct DocumentMapping {
  const YamlNode& node;
  const std::string& path;
  std::span<const keys::Key* const> known;

  /// The row of one of its entries; null where no table has it.
  [[nodiscard]] const keys::Key* key_of(const YamlEntry& entry) const;
};
using VisitMapping = std::function<void(const DocumentMapping& mapping)>;

/// Visits this mapping, then those in it, by the forms that their keys have.
void visit_mappings(const DocumentMapping& mapping, const VisitMapping& visit);
/// The same of a document that this table describes.
void visit_mappings(const YamlNode& document, const keys::Mapping& table, const VisitMapping& visit);

/// Calls a scenario's keys and values by our names; of two names of one key, what the command line or a table states
/// holds. Throws ScenarioError where one file states both.
void use_our_names(YamlNode& document);

/// The same in a framework's file.
void use_our_names_of_settings(YamlNode& document);

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

// A document beside the tables of its keys: every mapping in it, with what may stand there.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/scenario/keys/keys.hpp"
#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// A mapping of a document.
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

}  // namespace foretrain

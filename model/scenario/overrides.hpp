// Values given outside of the file (`--set KEY=VALUE`, cells of a table of cases) written into the document before it
// is read, so that they meet the same checks; and presets with some values replaced.
#pragma once

#include <string>

#include "model/scenario/yaml_document.hpp"

namespace foretrain {

struct Override {
  std::string key;  ///< dotted
  std::string value;
  SourcePosition where;  ///< where the value stands
};

/// Splits "KEY=VALUE", or "--option KEY=VALUE" of an option that stands for a key; its position names the text itself,
/// or the option and the value. Throws ScenarioError when there is no "=", key or value.
Override parse_override(const std::string& stated);

/// Writes a value into the document, making mappings on the way. The value is YAML (`8`, `[a, b]`, `{ … }`). Below a
/// name
/// (`cluster.node: dgx-h100`, key `cluster.node.gpus`) the name becomes `preset` of a new mapping. Throws ScenarioError
/// for an empty part of the key, for a value inside a list, and for malformed YAML.
void apply_override(YamlNode& document, const Override& change);

/// `base` with the entries of `changes` put over it, mapping by mapping; other values are replaced whole. A mapping put
/// over a name keeps the name as its `preset`.
YamlNode merged(const YamlNode& base, const YamlNode& changes);

}  // namespace foretrain

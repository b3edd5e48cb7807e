// Fields of a Hugging Face config.json that are no shapes of ours as they stand.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario/yaml_document.hpp"

namespace foretrain {

/// One of our keys and its value, worked out of several fields.
struct DerivedKey {
  std::string_view key;
  std::string value;
};
/// Windows, heads of keys, gates, shared experts and layers of Mamba. Throws ScenarioError where they follow no rule
/// that a scenario can state.
std::vector<DerivedKey> derived_keys(const YamlNode& config, std::string_view type);

/// Throws ScenarioError for a field that is named like a shape (…_size, …_layers, …) and is neither `understood` nor
/// known to cost nothing, naming it; and for those whose usual value alone is understood by the family.
void check_hugging_face_fields(const YamlNode& config, std::string_view family,
                               std::span<const std::string_view> understood);

}  // namespace foretrain

#include "model/scenario/accepted_names.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

namespace {

YamlNode* node_at(YamlNode& document, std::string_view dotted_key) {
  return const_cast<YamlNode*>(std::as_const(document).at(dotted_key));
}

void use_our_value(const keys::AcceptedValue& accepted, YamlNode* node) {
  if (node != nullptr && node->scalar == accepted.theirs) node->scalar = accepted.ours;
}

/// One value of a framework's setting, and the condition that it holds on.
void use_our_values(std::string_view key, YamlNode& setting) {
  for (const keys::AcceptedValue& accepted : keys::accepted_values()) {
    if (key == accepted.key) use_our_value(accepted, node_at(setting, "value"));
    const std::string_view condition = accepted.key.substr(accepted.key.rfind('.') + 1);
    if (YamlEntry* const when = setting.find("when")) use_our_value(accepted, node_at(when->value, condition));
  }
}

void use_current_names(YamlNode* mapping) {
  if (mapping == nullptr) return;
  for (YamlEntry& entry : mapping->entries) {
    std::string current = keys::current_name(entry.key);
    if (current == entry.key) continue;
    if (mapping->find(current) != nullptr) {
      throw ScenarioError(entry.value.where, entry.key, current + " says it already", "one of them");
    }
    entry.key = std::move(current);
  }
}

}  // namespace

void use_our_names(YamlNode& document) {
  std::optional<ScenarioError> twice;
  for (const keys::AcceptedName& name : keys::accepted_names()) {
    YamlNode* const parent = node_at(document, name.mapping);
    if (parent == nullptr || !parent->is_mapping()) continue;
    YamlNode& keys = *parent;
    YamlEntry* const theirs = keys.find(name.theirs);
    if (theirs == nullptr) continue;
    if (const YamlEntry* ours = keys.find(name.ours)) {
      const std::string& file = theirs->value.where.file;
      if (file == ours->value.where.file) {
        twice.emplace(theirs->value.where, join_path(name.mapping, name.theirs),
                      join_path(name.mapping, name.ours) + " says it already", "one of them");
      }
      const std::string_view earlier = file == document.where.file ? name.theirs : name.ours;
      std::erase_if(keys.entries, [&](const YamlEntry& entry) { return entry.key == earlier; });
    }
    if (YamlEntry* const left = keys.find(name.theirs)) left->key = name.ours;
  }
  if (twice) throw ScenarioError(*twice);
  for (const keys::AcceptedValue& value : keys::accepted_values()) use_our_value(value, node_at(document, value.key));
}

void use_our_names_of_settings(YamlNode& document) {
  YamlEntry* settings = document.find("settings");
  if (settings == nullptr) {
    settings = document.find("habits");
    if (settings == nullptr) return;
    settings->key = "settings";
  }
  use_current_names(&settings->value);
  use_current_names(node_at(document, "learned.likely"));
  for (YamlEntry& entry : settings->value.entries) {
    if (entry.value.is_mapping()) use_our_values(entry.key, entry.value);
    for (YamlNode& one : entry.value.items) use_our_values(entry.key, one);
  }
}

}  // namespace foretrain

#include "model/scenario/overrides.hpp"

#include <fmt/format.h>

#include <utility>

#include "model/base/files.hpp"
#include "model/base/hash.hpp"
#include "model/base/session.hpp"
#include "model/base/text.hpp"
#include "model/base/utf8.hpp"
#include "model/scenario/keys/keys.hpp"

namespace foretrain {

namespace {

/// Values inside of an override have no place of their own.
/// A value that was parsed: those of a sweep come again and again, and parsing takes its time.
struct ValueKey {
  using Value = const YamlNode;  ///< whose positions mean nothing
  std::string text;

  bool operator==(const ValueKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(text); }
  [[nodiscard]] std::size_t bytes(const YamlNode&) const {
    constexpr std::size_t of_character = 50;  // of many short keys and values
    return sizeof(ValueKey) + sizeof(YamlNode) + of_character * text.size();
  }
};

/// The value as YAML; plain words and numbers, by far the commonest, need no parser.
YamlNode parse_value(const Override& change) {
  const std::string_view text = trim(change.value);
  if (text.empty()) throw ScenarioError(change.where, change.key, "empty value", "a value");
  if (std::string_view("[{\"'&*!|>%@`#").find(text.front()) == std::string_view::npos) {
    return yaml_scalar(std::string(text), change.where);
  }
  try {
    YamlNode node = *session().known(ValueKey{std::string(text)}, [&] { return parse_yaml(text, change.where.file); });
    set_position(node, change.where);
    return node;
  } catch (const ScenarioError& error) {
    throw ScenarioError(change.where, change.key, error.got(), error.expected());
  }
}

/// `name` → { preset: name }
void make_preset_mapping(YamlNode& node) {
  YamlNode mapping = yaml_mapping(node.where);
  mapping.entries.push_back({"preset", node.where, std::move(node)});
  node = std::move(mapping);
}

/// The element of a list of mappings whose `id` this is, as a list of tasks has; lists inside it (loops) are searched
/// as well. Null where there is none.
YamlNode* element_with_id(YamlNode& list, std::string_view id) {
  for (YamlNode& item : list.items) {
    const YamlEntry* own = item.find("id");
    if (own != nullptr && own->value.scalar == id) return &item;
    for (YamlEntry& entry : item.entries) {
      if (!entry.value.is_sequence()) continue;
      if (YamlNode* inner = element_with_id(entry.value, id)) return inner;
    }
  }
  return nullptr;
}

/// Leaves out what the file says of parameter servers where an override chooses an algorithm that has none.
void leave_out_servers(YamlNode& synchronisation, const Override& algorithm, const std::string& file) {
  if (algorithm.where.file == file || !keys::has_no_servers(trim(algorithm.value))) return;
  std::erase_if(synchronisation.entries, [&](const YamlEntry& entry) {
    return entry.value.where.file == file && keys::is_server_key(entry.key);
  });
}

}  // namespace

Override parse_override(const std::string& text) {
  const SourcePosition where{fmt::format("--set {}", shortened(text, 100)), 0, 0};
  require_text(text, where.file);
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || trim(text.substr(0, equals)).empty() || trim(text.substr(equals + 1)).empty()) {
    throw ScenarioError(where, "", "this is no KEY=VALUE", "for example plan.tensor=8");
  }
  return {std::string(trim(std::string_view(text).substr(0, equals))), text.substr(equals + 1), where};
}

void apply_override(YamlNode& document, const Override& change) {
  YamlNode *node = &document, *mapping = nullptr;
  const std::vector<std::string> keys = split(change.key, '.');
  if (keys.size() > deepest_nesting) {
    throw ScenarioError(change.where, change.key, fmt::format("a key of {} parts", keys.size()),
                        fmt::format("at most {} words joined by dots", deepest_nesting));
  }
  for (const std::string& key : keys) {
    if (key.empty())
      throw ScenarioError(change.where, change.key, "a part of this key is empty", "words joined by dots");
    if (node->is_null()) *node = yaml_mapping(change.where);
    if (node->is_scalar()) make_preset_mapping(*node);
    if (node->is_sequence()) {
      YamlNode* element = element_with_id(*node, key);
      if (element == nullptr) {
        throw ScenarioError(change.where, change.key, fmt::format("\"{}\" lies inside a list", key),
                            "the id of one of the list's elements; or replace the list as a whole");
      }
      node = element;
      continue;
    }
    YamlEntry* entry = node->find(key);
    if (entry == nullptr) entry = &node->entries.emplace_back(YamlEntry{key, change.where, YamlNode{}});
    mapping = node;
    node = &entry->value;
  }
  *node = parse_value(change);
  const bool synchronises = change.key == "plan.sync.algorithm" || change.key == "workload.collective.algorithm";
  if (synchronises && mapping != nullptr) leave_out_servers(*mapping, change, document.where.file);
}

YamlNode merged(const YamlNode& base, const YamlNode& changes) {
  if (!changes.is_mapping() || base.is_sequence() || base.is_null()) return changes;
  YamlNode result = base;
  if (result.is_scalar()) {
    if (changes.find("preset") != nullptr) return changes;
    make_preset_mapping(result);
  }
  for (const YamlEntry& entry : changes.entries) {
    if (YamlEntry* old = result.find(entry.key)) {
      *old = {entry.key, entry.where, merged(old->value, entry.value)};
    } else {
      result.entries.push_back(entry);
    }
  }
  result.where = changes.where;
  return result;
}

}  // namespace foretrain

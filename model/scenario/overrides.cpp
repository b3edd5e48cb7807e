#include "model/scenario/overrides.hpp"

#include <fmt/format.h>

#include <utility>

#include "model/base/files.hpp"
#include "model/base/hash.hpp"
#include "model/base/session.hpp"
#include "model/base/text.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/keys/keys.hpp"

namespace foretrain {

namespace {

/// A value as it was parsed before: a sweep's points have few different ones.
struct ValueKey {
  using Value = const YamlNode;
  std::string text, where;

  bool operator==(const ValueKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(text, where); }
};

/// The value as YAML; plain words and numbers, by far the commonest, need no parser.
YamlNode parse_value(const Override& change) {
  const std::string_view text = trim(change.value);
  if (text.empty()) throw ScenarioError(change.where, change.key, "empty value", "a value");
  if (std::string_view("[{\"'&*!|>%@`#").find(text.front()) == std::string_view::npos) {
    return yaml_scalar(std::string(text), change.where);
  }
  try {
    return *session().known(ValueKey{std::string(text), change.where.text()}, [&] {
      YamlNode node = parse_yaml(text, change.where.file);
      set_position(node, change.where);  // values inside of an override have no place of their own
      return node;
    });
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

/// Leaves out what the file says beside a key that an override replaces: of parameter servers where it chooses an
/// algorithm that has none, and the batch in other words.
void leave_out_replaced(YamlNode& mapping, const Override& change, const std::string& file) {
  constexpr std::string_view whole = "workload.train.global_batch", per_gpu = "workload.train.global_batch_per_gpu";
  const bool synchronises = change.key == "plan.sync.algorithm" || change.key == "workload.collective.algorithm";
  const bool is_batch = change.key == whole || change.key == per_gpu;
  const bool no_servers = synchronises && keys::has_no_servers(trim(change.value));
  if (change.where.file == file || !(is_batch || no_servers)) return;
  const std::string_view other = (change.key == whole ? per_gpu : whole).substr(whole.find("global"));
  std::erase_if(mapping.entries, [&](const YamlEntry& entry) {
    return entry.value.where.file == file && (is_batch ? entry.key == other : keys::is_server_key(entry.key));
  });
}

}  // namespace

Override parse_override(const std::string& stated) {
  const bool by_option = stated.starts_with("--");
  const std::size_t begin = by_option ? stated.find(' ') + 1 : 0;
  const std::string text = stated.substr(begin);
  const std::size_t equals = text.find('=');
  const std::string said = by_option ? stated.substr(0, begin) + text.substr(equals + 1) : "--set " + text;
  const SourcePosition where{shortened(said, 106), 0, 0};
  require_text(text, where.file);
  if (equals == std::string::npos || trim(text.substr(0, equals)).empty() || trim(text.substr(equals + 1)).empty()) {
    throw ScenarioError(where, "", "this is no KEY=VALUE", "for example plan.tensor=8");
  }
  return {keys::current_name(trim(std::string_view(text).substr(0, equals))), text.substr(equals + 1), where};
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
  if (mapping != nullptr) leave_out_replaced(*mapping, change, document.where.file);
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

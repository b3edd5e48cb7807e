#include "reports/import/own_node.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/base/text.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "reports/import/draft.hpp"
#include "reports/import/node_draft.hpp"
#include "reports/print/table.hpp"
#include "reports/print/wiring_text.hpp"

namespace foretrain {

namespace {

using Comments = std::map<std::string, std::string>;

/// Among the mapping's keys and those of the variant that it chooses.
const keys::Key* find_key(const keys::Mapping& known, const YamlNode& mapping, const std::string& name) {
  const YamlEntry* decides = known.decides.empty() ? nullptr : mapping.find(known.decides);
  const keys::Form form{.kind = keys::Form::Kind::mapping, .mapping = &known};
  for (const keys::Key* key : keys::keys_of(form, decides != nullptr ? decides->value.scalar : "")) {
    if (key->name == name) return key;
  }
  return nullptr;
}

/// What the keys below a mapping mean, by path.
void add_meanings(const YamlNode& mapping, const keys::Mapping& known, const std::string& prefix, Comments& meanings) {
  for (const YamlEntry& entry : mapping.entries) {
    const keys::Key* key = find_key(known, mapping, entry.key);
    if (key == nullptr) continue;
    const std::string path = prefix + entry.key;
    meanings[path] = key->meaning;
    const auto forms = key->value.forms();
    const auto form = std::ranges::find_if(forms, [](const keys::Form& one) { return one.mapping != nullptr; });
    if (form == forms.end()) continue;
    if (form->shape != keys::Form::Shape::by_name) {
      add_meanings(entry.value, *form->mapping, path + ".", meanings);
      continue;
    }
    for (const YamlEntry& named : entry.value.entries) {
      add_meanings(named.value, *form->mapping, path + "." + named.key + ".", meanings);
    }
  }
}

/// What its links are, and a drawing of the tree that they make.
std::string wiring_comments(const YamlNode& document) {
  const Node node = read_node(Field(document, ""));
  const auto meaning = [](const keys::Mapping& mapping, std::string_view key) {
    return keys::key_of(mapping, key).meaning;
  };
  std::string text =
      as_comments({fmt::format("{} Ends: {}", meaning(keys::node, "wiring"), meaning(keys::link, "between")),
                   fmt::format("link: {} count: {}", meaning(keys::link, "link"), meaning(keys::link, "count")),
                   "The tree that they make, bandwidths as large copies reach them in one direction:"});
  for (const std::string& line : split(wiring_text(node, node.network, 0), '\n')) {
    if (!line.empty()) text += "#   " + line + "\n";
  }
  return text;
}

}  // namespace

std::string own_node(const std::string& like, const std::string& name) {
  YamlNode document = catalogue_node(like);
  if (!name.empty()) {
    apply_override(document, {"name", flow_text(yaml_scalar(name, {})), {"hardware init", 0, 0}});
  }
  Comments comments;
  add_meanings(document, keys::node, "", comments);
  std::erase_if(comments, [](const auto& comment) { return comment.first.starts_with("sources."); });
  comments.erase("wiring");
  constexpr int column = 42;
  const std::string title = text_at(document, "name") +
                            ": a machine for `cluster.node` of a scenario. Draw it with `foretrain plot topology "
                            "FILE`; `foretrain help KEY` tells of a key.";
  return as_comments({title}) + wiring_comments(document) + yaml_text(document, comments, column);
}

}  // namespace foretrain

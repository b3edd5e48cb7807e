#include "model/scenario/document_walk.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

namespace {

/// { matmul: { … } } in place of { kind: matmul, … }.
const YamlEntry* work_as_key(const YamlNode& value, const keys::Mapping& mapping) {
  const bool works = &mapping == &keys::run || &mapping == &keys::operation;
  if (!works || value.find(mapping.decides) != nullptr) return nullptr;
  const auto words = keys::key_of(mapping, mapping.decides).value.forms().front().words;
  const auto found = std::ranges::find_if(value.entries, [&](const YamlEntry& entry) {
    const bool whole = entry.value.is_mapping() || entry.key == "sleep";
    return whole && std::ranges::find(words, entry.key) != words.end();
  });
  return found == value.entries.end() ? nullptr : &*found;
}

void visit_value(const YamlNode& value, const std::string& path, const keys::Form& form, const VisitMapping& visit) {
  using Shape = keys::Form::Shape;
  if (form.mapping == nullptr) return;
  keys::Form inner = form;
  inner.shape = form.shape == Shape::list_of_lists ? Shape::list : Shape::one;
  if (value.is_sequence() && form.shape != Shape::one && form.shape != Shape::by_name) {
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      visit_value(value.items[i], fmt::format("{}[{}]", path, i), inner, visit);
    }
  } else if (value.is_mapping() && form.shape == Shape::by_name) {
    for (const YamlEntry& entry : value.entries) visit_value(entry.value, join_path(path, entry.key), inner, visit);
  } else if (value.is_mapping() && (form.shape == Shape::one || form.shape == Shape::one_or_list)) {
    const YamlEntry* work = work_as_key(value, *form.mapping);
    const YamlEntry* decides = value.find(form.mapping->decides);
    const std::string word = work != nullptr ? work->key : decides != nullptr ? decides->value.scalar : "";
    visit_mappings({work != nullptr ? work->value : value, work != nullptr ? join_path(path, word) : path,
                    keys::keys_of(form, word)},
                   visit);
  }
}

}  // namespace

const keys::Key* DocumentMapping::key_of(const YamlEntry& entry) const {
  const auto found = std::ranges::find(known, entry.key, &keys::Key::name);
  return found == known.end() ? nullptr : *found;
}

void visit_mappings(const DocumentMapping& mapping, const VisitMapping& visit) {
  visit(mapping);
  for (const YamlEntry& entry : mapping.node.entries) {
    const keys::Key* key = mapping.key_of(entry);
    if (key == nullptr) continue;
    for (const keys::Form& form : key->value.forms()) {
      visit_value(entry.value, join_path(mapping.path, entry.key), form, visit);
    }
  }
}

void visit_mappings(const YamlNode& document, const keys::Mapping& table, const VisitMapping& visit) {
  visit_mappings({document, "", keys::keys_of({.kind = keys::Form::Kind::mapping, .mapping = &table}, "")}, visit);
}

}  // namespace foretrain

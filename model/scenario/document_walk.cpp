#include "model/scenario/document_walk.hpp"

#include "model/base/text.hpp"
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
      throw ScenarioError(entry.value.where, entry.key, current + " states it already", "one of them");
    }
    entry.key = std::move(current);
  }
}

using KnownKeys = std::span<const keys::Key* const>;

/// More than a page of complaints helps nobody.
constexpr std::size_t most_complaints = 30;

/// More keys than that are not listed in an error.
constexpr std::size_t most_listed = 12;

/// The places of a scenario at which a key stands that was sought at `path`: in a mapping of the one sought in, or in
/// one that this is in. The least deep first. `known`: what could have stood there.
std::vector<std::string> further_in_or_out(const std::string& path, KnownKeys known) {
  const auto mapping_of = [](const std::string& key) { return key.substr(0, key.rfind('.') + 1); };
  const std::string sought_in = mapping_of(path);
  const bool in_other_file = sought_in.empty() && (known.empty() || known.front() != &keys::scenario.keys.front());
  if (in_other_file) return {};
  const std::string name = path.substr(sought_in.size());
  std::vector<std::string> places = keys::dotted_keys();
  std::erase_if(places, [&](const std::string& key) {
    const std::string mapping = mapping_of(key);
    const bool related = mapping.starts_with(sought_in) || sought_in.starts_with(mapping);
    return mapping == sought_in || !related || key.substr(mapping.size()) != name;
  });
  std::ranges::stable_sort(places, {}, [](const std::string& key) { return std::ranges::count(key, '.'); });
  return places;
}

ScenarioError complaint_about(const YamlEntry& entry, const std::string& path, KnownKeys known) {
  std::vector<std::string> words;
  for (const keys::Key* key : known) words.emplace_back(key->name);
  std::string expected;
  if (const auto ours = keys::our_name(entry.key)) {
    expected = fmt::format("foretrain calls it {}", *ours);
  } else if (entry.key == "true") {
    expected = "\"on\", in quotes: programs that read YAML 1.1, PyYAML for one, take a bare on for true";
  } else if (const auto nearest = nearest_word(entry.key, words)) {
    expected = fmt::format("did you mean {}?", path.substr(0, path.rfind('.') + 1) + *nearest);
  } else if (const std::vector<std::string> places = further_in_or_out(path, known); !places.empty()) {
    expected = fmt::format("did you mean {}?", or_list(places, 3));
  } else {
    expected = words.size() <= most_listed ? fmt::format("known here: {}", or_list(words, most_listed))
                                           : "`foretrain keys` lists all";
  }
  return {entry.where, path, "unknown key", std::move(expected)};
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

void use_our_names(YamlNode& document) {
  std::optional<ScenarioError> twice;
  for (const keys::AcceptedName& name : keys::accepted_names()) {
    YamlNode* const keys = node_at(document, name.mapping);
    YamlEntry* const theirs = keys == nullptr ? nullptr : keys->find(name.theirs);
    if (theirs == nullptr) continue;
    if (const YamlEntry* ours = keys->find(name.ours)) {
      const std::string& file = theirs->value.where.file;
      if (file == ours->value.where.file) {
        twice.emplace(theirs->value.where, join_path(name.mapping, name.theirs),
                      join_path(name.mapping, name.ours) + " states it already", "one of them");
      }
      const std::string_view earlier = file == document.where.file ? name.theirs : name.ours;
      std::erase_if(keys->entries, [&](const YamlEntry& entry) { return entry.key == earlier; });
    }
    if (YamlEntry* const left = keys->find(name.theirs)) left->key = name.ours;
  }
  if (twice) throw ScenarioError(*twice);
  for (const keys::AcceptedValue& value : keys::accepted_values()) use_our_value(value, node_at(document, value.key));
}

void use_our_names_of_settings(YamlNode& document) {
  YamlEntry* settings = document.find("settings");
  if (settings == nullptr) settings = document.find("habits");
  if (settings == nullptr) return;
  settings->key = "settings";
  use_current_names(&settings->value);
  use_current_names(node_at(document, "learned.likely"));
  for (YamlEntry& entry : settings->value.entries) {
    if (entry.value.is_mapping()) use_our_values(entry.key, entry.value);
    for (YamlNode& one : entry.value.items) use_our_values(entry.key, one);
  }
}

UnknownKeys::UnknownKeys(std::vector<ScenarioError> complaints)
    : ScenarioError(complaints.front()), complaints_(std::move(complaints)) {
  const auto place = [](const ScenarioError& error) { return std::pair(error.where().line, error.where().column); };
  std::stable_sort(complaints_.begin() + 1, complaints_.end(),
                   [&](const ScenarioError& a, const ScenarioError& b) { return place(a) < place(b); });
  for (std::size_t i = 0; i < std::min(complaints_.size(), most_complaints); ++i) {
    if (i > 0) text_ += '\n';
    text_ += complaints_[i].what();
  }
  if (complaints_.size() > most_complaints) {
    text_ += fmt::format("\nand {} more", complaints_.size() - most_complaints);
  }
}

std::vector<ScenarioError> unknown_keys(const YamlNode& mapping, const std::string& path, KnownKeys known) {
  std::vector<ScenarioError> found;
  visit_mappings({mapping, path, known}, [&](const DocumentMapping& one) {
    for (const YamlEntry& entry : one.node.entries) {
      if (one.key_of(entry) == nullptr)
        found.push_back(complaint_about(entry, join_path(one.path, entry.key), one.known));
    }
  });
  return found;
}

void throw_with_unknown_keys(const ScenarioError& error, const YamlNode& scenario) {
  std::vector<ScenarioError> all = {error};
  if (const auto* several = dynamic_cast<const UnknownKeys*>(&error)) all = several->complaints();
  const auto known = keys::keys_of({.kind = keys::Form::Kind::mapping, .mapping = &keys::scenario}, "");
  for (ScenarioError& other : unknown_keys(scenario, "", known)) {
    const bool reported = std::ranges::any_of(all, [&](const ScenarioError& one) { return one.key() == other.key(); });
    if (!reported) all.push_back(std::move(other));
  }
  throw UnknownKeys(std::move(all));
}

}  // namespace foretrain

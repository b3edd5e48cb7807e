#include "model/scenario/unknown_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "model/base/text.hpp"
#include "model/scenario/document_walk.hpp"
#include "model/scenario/keys/key_tree.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

namespace {

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
    const bool told = std::ranges::any_of(all, [&](const ScenarioError& one) { return one.key() == other.key(); });
    if (!told) all.push_back(std::move(other));
  }
  throw UnknownKeys(std::move(all));
}

}  // namespace foretrain

#include "tests/property/settings.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"

namespace foretrain::test {

namespace {

struct Tree {
  std::map<std::string, Tree> keys;
  std::string value;
};

/// Elements "faults[0]", "faults[1]" follow each other and become the one list "faults".
void write(const Tree& tree, const std::string& indent, std::string& text) {
  for (auto key = tree.keys.begin(); key != tree.keys.end();) {
    const std::string& name = key->first;
    if (!name.ends_with(']')) {
      text += indent + name + ":";
      if (key->second.keys.empty()) {
        text += " " + key->second.value + "\n";
      } else {
        text += "\n";
        write(key->second, indent + "  ", text);
      }
      ++key;
      continue;
    }
    const std::string list = name.substr(0, name.find('['));
    text += indent + list + ": [";
    for (const char* separator = " "; key != tree.keys.end() && key->first.starts_with(list + "["); ++key) {
      text += separator + key->second.value;
      separator = ", ";
    }
    text += " ]\n";
  }
}

/// Values that make a scenario simpler: nothing at all, 1, half as much.
std::vector<std::optional<std::string>> simpler(const std::string& value) {
  std::vector<std::optional<std::string>> values = {std::nullopt};
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 2) return values;
  values.emplace_back("1");
  if (number > 3) values.emplace_back(std::to_string(number / 2));
  return values;
}

}  // namespace

std::string yaml_of(const Settings& settings) {
  Tree root;
  for (const auto& [key, value] : settings) {
    Tree* place = &root;
    for (std::size_t from = 0; from <= key.size();) {
      const std::size_t dot = std::min(key.find('.', from), key.size());
      place = &place->keys[key.substr(from, dot - from)];
      from = dot + 1;
    }
    place->value = value;
  }
  std::string text;
  write(root, "", text);
  return text;
}

Scenario scenario_of(const Settings& settings) { return load_scenario_text(yaml_of(settings), "random.yaml"); }

Violation check(const Property& property, const Settings& settings) {
  try {
    return property(settings);
  } catch (const ScenarioError&) {
  } catch (const UsageError&) {
  }
  return std::nullopt;
}

Settings shrink(Settings settings, const Property& property) {
  int tries = 300;
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    for (const auto& [key, value] : Settings(settings)) {
      for (const std::optional<std::string>& simple : simpler(value)) {
        if (--tries < 0) return settings;
        Settings smaller = settings;
        if (simple) {
          smaller[key] = *simple;
        } else {
          smaller.erase(key);
        }
        if (!check(property, smaller)) continue;
        settings = std::move(smaller);
        shrunk = true;
        break;
      }
    }
  }
  return settings;
}

}  // namespace foretrain::test

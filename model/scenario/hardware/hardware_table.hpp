// Tables of scenarios/hardware whose entries have names of their own: cards.yaml, storage.yaml, failures.yaml, …
#pragma once

#include <string_view>

#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// All of scenarios/hardware/FILE.
const YamlNode& hardware_table(std::string_view file);

/// The entry of a table that has the name; complains at the name with the nearest known one.
const YamlNode& named_entry(const YamlNode& table, const Field& name, std::string_view what);

/// What a field says that is an entry's name, { preset: NAME, … } with keys that take the place of the entry's, or all
/// keys itself.
YamlNode entry_or_changes(const YamlNode& table, const Field& field, std::string_view what);

/// "80 %" → 0.8; complains about what is no share from above 0 % to 100 %.
double read_share(const Field& field);

}  // namespace foretrain

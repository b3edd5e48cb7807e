// Tables of scenarios/hardware whose entries have names of their own: cards.yaml, storage.yaml, failures.yaml, …
#pragma once

#include <optional>
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

inline constexpr const char* any_share = "more than 0 %, up to 100 %";
/// "80 %" → 0.8; complains about another percentage than from above 0 % to 100 %. Nothing for another unit.
std::optional<double> percentage(const Field& field, std::string_view expected = any_share);
/// The same where another unit is wrong.
double read_share(const Field& field, std::string_view expected = any_share);

}  // namespace foretrain

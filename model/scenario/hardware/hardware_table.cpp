#include "model/scenario/hardware/hardware_reader.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/catalogue.hpp"

namespace foretrain {

const YamlNode& hardware_table(std::string_view file) {
  return cached_yaml_file((data_directory() / "hardware" / file).string());
}

const YamlNode& named_entry(const YamlNode& table, const Field& name, std::string_view what) {
  std::vector<std::string> known;
  for (const YamlEntry& entry : table.entries) {
    if (entry.key == name.text()) return entry.value;
    known.push_back(entry.key);
  }
  name.fail(fmt::format("unknown {} \"{}\"", what, name.text()),
            did_you_mean(nearest_word(name.text(), known), "one of " + or_list(known, 40)));
}

YamlNode entry_or_changes(const YamlNode& table, const Field& field, std::string_view what) {
  if (field.is_scalar()) return named_entry(table, field, what);
  const auto preset = field.find("preset");
  if (!preset) return field.node();
  YamlNode tree = named_entry(table, *preset, what);
  for (const YamlEntry& own : field.node().entries) {
    if (own.key == "preset") continue;
    std::erase_if(tree.entries, [&](const YamlEntry& entry) { return entry.key == own.key; });
    tree.entries.push_back(own);
  }
  return tree;
}

std::optional<double> percentage(const Field& field, std::string_view expected) {
  const NumberAndUnit parts = field.parse(split_number_and_unit);
  if (parts.unit != "%") return std::nullopt;
  if (!(parts.number > 0.0 && parts.number <= 100.0)) {
    field.fail(fmt::format("{} %", parts.number), std::string(expected));
  }
  return parts.number / 100.0;
}

double read_share(const Field& field, std::string_view expected) {
  const std::optional<double> share = percentage(field);
  if (!share) field.fail("no share", std::string(expected));
  return *share;
}

}  // namespace foretrain

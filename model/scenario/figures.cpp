#include "model/scenario/figures.hpp"

#include "model/base/text.hpp"
#include "model/scenario/catalogue.hpp"

namespace foretrain {

Source read_source(const Field& field) {
  const MappingReader source = field.mapping(keys::source);
  Source result{source["kind"].as<ConstantKind>(), source["text"].text()};
  if (trim(result.text).empty()) source.fail("text", "an empty source", "where the figure was published or measured");
  return result;
}

namespace {

/// Whether a value, or one of those below it, was written in a file.
bool is_of_file(const YamlNode& node, const std::string& file) {
  const auto of_file = [&](const YamlNode& below) { return is_of_file(below, file); };
  return node.is_mapping() ? std::ranges::any_of(node.entries, of_file, &YamlEntry::value)
                           : node.where.file == file || std::ranges::any_of(node.items, of_file);
}

}  // namespace

std::vector<std::string> assumed_in(const MappingReader& owner) {
  std::vector<std::string> warnings;
  const auto assumed = owner.find("assumed");
  if (!assumed) return warnings;
  if (!assumed->is_mapping()) assumed->fail("no mapping of keys", "assumed: { KEY: why it is assumed }");
  for (const YamlEntry& entry : assumed->node().entries) {
    const YamlNode* value = owner.field().node().at(entry.key);
    if (value != nullptr && !is_of_file(*value, entry.where.file)) continue;
    warnings.push_back(fmt::format("assumed: {}: {}", entry.key, assumed->below(entry).text()));
  }
  return warnings;
}

FigureLog::FigureLog(std::string name, const Field& owner) : name_(std::move(name)), owner_path_(owner.path()) {
  const YamlEntry* kind = owner.node().find("kind");  // files of the catalogue have one
  if (kind == nullptr && !owner.find("sources")) return;
  const Field list = owner.at("sources", "sources: { default: { kind: datasheet, text: \"…\" } }");
  if (!list.is_mapping()) list.fail("sources are no mapping", "sources: { default: { kind: datasheet, text: \"…\" } }");
  // A file's own, and those of the presets that it changes.
  files_.insert(list.where().file);
  if (kind != nullptr) files_.insert(kind->where.file);
  for (const YamlEntry& entry : list.node().entries) {
    files_.insert(entry.where.file);
    const Field field = list.below(entry);
    if (entry.key != "default" && owner.node().at(entry.key) == nullptr) {
      throw ScenarioError(entry.where, field.path(), "no such figure in this file", "\"default\" or a key of the file");
    }
    sources_.emplace_back(entry.key, read_source(field));
  }
  list.fail_if(kind != nullptr && list.node().find("default") == nullptr, "no default source",
               "default: { kind: datasheet, text: \"…\" }");
}

void FigureLog::add(const Field& figure) { add(figure, source_of(figure)); }

void FigureLog::add(const Field& figure, const Source& source) {
  const NumberAndUnit parts = figure.parse(split_number_and_unit);
  constants_.push_back(
      {fmt::format("{}.{}", name_, relative_path(figure)), parts.number, parts.unit, source.kind, source.text});
}

void FigureLog::add(const MappingReader& mapping, std::initializer_list<std::string_view> keys,
                    const std::optional<Source>& source) {
  for (const std::string_view key : keys) {
    if (const auto figure = mapping.find(key)) add(*figure, source ? *source : source_of(*figure));
  }
}

void FigureLog::append(const std::vector<Constant>& constants) {
  constants_.insert(constants_.end(), constants.begin(), constants.end());
}

std::string FigureLog::relative_path(const Field& figure) const {
  // Link types live in a file of their own, outside of the owner.
  const bool inside = !owner_path_.empty() && figure.path().starts_with(owner_path_ + ".");
  return inside ? figure.path().substr(owner_path_.size() + 1) : figure.path();
}

Source FigureLog::source_of(const Field& figure) const {
  // Presets of the catalogue whose own sources were all replaced have those of the file that changes them.
  const std::string& file = figure.where().file;
  const bool sourced = files_.contains(file) || file.starts_with((data_directory() / "hardware" / "").string());
  if (!sources_.empty() && sourced) {
    for (std::string key = relative_path(figure); !key.empty();) {
      for (const auto& [name, source] : sources_) {
        if (name == key) return source;
      }
      const std::size_t dot = key.rfind('.');
      key = dot != std::string::npos ? key.substr(0, dot) : key == "default" ? "" : "default";
    }
  }
  return {ConstantKind::assumption, fmt::format("stated in {}", figure.where().text())};
}

}  // namespace foretrain

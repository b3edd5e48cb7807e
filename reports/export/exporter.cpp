#include "reports/export/exporter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/export/outgoing.hpp"
#include "reports/import/draft.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/settings.hpp"

namespace foretrain {

namespace {

using Values = std::map<std::string, std::string>;

constexpr Exporter all_exporters[] = {
#define EXPORTER(name, word, writes, lacks) {word, writes, export_##name, lacks},
#include "reports/export/exporters.def"
};

constexpr std::string_view model_of_training = "workload.train.model";

/// Files that are named from where the scenario lies, wherever the text is read.
YamlNode with_whole_paths(YamlNode node) {
  if (node.is_scalar() && node.scalar.find('.') != std::string::npos) {
    const std::filesystem::path path = std::filesystem::path(node.where.file).parent_path() / node.scalar;
    if (std::filesystem::exists(path)) node.scalar = std::filesystem::absolute(path).string();
  }
  for (YamlEntry& entry : node.entries) entry.value = with_whole_paths(entry.value);
  for (YamlNode& item : node.items) item = with_whole_paths(item);
  return node;
}

/// The machines that train, and what the file has no place for: said to the importer in the file's stead.
std::vector<std::string> said_beside(const Exporter& exporter, const Outgoing& out, const Values& stated) {
  std::vector<std::string> overrides;
  const YamlNode& document = out.scenario().where.document;
  const bool has_machines = exporter.word == "megatron" && out.scenario().cluster.groups.empty();
  YamlNode cluster = with_whole_paths(*document.at("cluster"));
  std::erase_if(cluster.entries, [](const YamlEntry& entry) {  // failures and prices need what files do not say
    constexpr std::string_view kept[] = {"node", "nodes", "gpus_per_node", "network", "groups", "nccl"};
    return std::ranges::find(kept, entry.key) == std::end(kept);
  });
  for (YamlEntry& entry : cluster.entries) {
    if (entry.key == "nodes") entry.value.scalar = std::to_string(training_nodes(out.scenario()));
    const bool is_in_file = has_machines && (entry.key == "nodes" || entry.key == "gpus_per_node");
    if (has_machines && !is_in_file) overrides.push_back("cluster." + entry.key + "=" + flow_text(entry.value));
  }
  if (!has_machines) overrides.push_back("cluster=" + flow_text(cluster));
  if (out.leaves_out(model_of_training)) {
    const YamlNode model = with_whole_paths(*document.at(model_of_training));
    overrides.push_back(fmt::format("{}={}", model_of_training, flow_text(model)));
  }
  for (const auto& [key, value] : stated) {
    if (out.leaves_out(key) && !key.starts_with(model_of_training)) overrides.push_back(key + "=" + value);
  }
  for (const auto& [key, value] : out.unread()) overrides.push_back(key + "=" + value);
  return overrides;
}

/// "25 MB" and "25000000 B" are the same.
bool is_same(const std::string& left, const std::string& right) {
  if (left == right) return true;
  try {
    return parse_quantity<Bytes>(left) == parse_quantity<Bytes>(right);
  } catch (const UnitError&) {
    return false;
  }
}

/// The scenario that the importer reads from the file.
Scenario imported_again(const Exporter& exporter, const Outgoing& out, const std::string& text, const Values& stated) {
  ImportInput input;
  input.file = exporter.word;
  input.text = text;
  input.overrides = said_beside(exporter, out, stated);
  const auto importer = std::ranges::find(importers(), exporter.word, &Importer::word);
  return load_scenario_text(importer->read(input), out.scenario().where.document.where.file);
}

/// Whether files of this trainer can have the key.
bool has_words_for(const Exporter& exporter, std::string_view key) {
  const std::string_view tool = exporter.word == "nemo" ? "megatron" : exporter.word;
  return std::ranges::any_of(all_settings(), [&](const SettingRow& row) {
    return !row.is_alias && row.group.starts_with(tool) && row.ours() == key;
  });
}

bool is_in_use(std::string_view value) {
  static constexpr std::string_view off[] = {"1", "0", "false", "none", "auto", "automatic"};
  return std::ranges::find(off, value) == std::end(off);
}

void add_unsaid(const Exporter& exporter, const std::string& key, const std::string& value, ExportedFile& file) {
  file.unsaid.push_back(key + ": " + value);
  if (is_in_use(value) && exporter.lacking(key)) file.lacking.emplace(key, file.unsaid.back());
}

void add_refusal(const std::string& why, ExportedFile& file) {
  file.unsaid.push_back("a plan that the trainer could have: " + why);
  file.lacking.emplace("", file.unsaid.back());
}

void compare(const Exporter& exporter, const Outgoing& out, const Scenario& again, ExportedFile& file) {
  const Values stated = stated_values(out.scenario());
  Values there;
  std::set<std::string> said_there;  // by the file
  for (const ResolvedSetting& setting : resolved_values(again)) {
    there[setting.key] = setting.value;
    if (setting.from == ResolvedSetting::From::scenario) said_there.insert(setting.key);
  }
  for (const auto& [key, value] : stated_values(again)) there[key] = value;
  if (out.leaves_out(model_of_training)) {
    add_unsaid(exporter, std::string(model_of_training), out.train().model.name, file);
  }
  for (const auto& [key, value] : stated) {
    if (key == "plan.framework" || (key.starts_with(model_of_training) && out.leaves_out(key))) continue;
    const auto found = there.find(key);
    const bool is_said = !out.leaves_out(key) && found != there.end() && is_same(value, found->second);
    if (!is_said) add_unsaid(exporter, key, value, file);
  }
  if (again.trainer != out.scenario().trainer) {
    file.framework = again.trainer;
    // Hugging Face's trainer shards by FSDP or DeepSpeed.
    const bool is_own = exporter_of(out.scenario()) == exporter.word && out.scenario().trainer != "huggingface";
    const auto zero = stated.find("plan.zero");
    if (is_own && zero != stated.end())
      file.lacking.emplace(zero->first, fmt::format("{}: {}", zero->first, zero->second));
  }
  for (const ResolvedSetting& setting : resolved_values(out.scenario())) {
    const auto found = there.find(setting.key);
    if (setting.key == "plan.framework" || stated.contains(setting.key) || found == there.end() ||
        !has_words_for(exporter, setting.key))
      continue;
    if (is_same(setting.value, found->second)) continue;
    if (said_there.contains(setting.key)) {
      add_unsaid(exporter, setting.key, setting.value, file);
      continue;
    }
    file.otherwise.push_back(fmt::format("{}: predicted {}, by default {}", setting.key, setting.value, found->second));
  }
}

}  // namespace

std::span<const Exporter> exporters() { return all_exporters; }

bool Exporter::lacking(std::string_view key) const {
  return std::ranges::any_of(split(lacks, ' '), [key](std::string_view one) {
    return key == one || (one.back() == '.' && key.starts_with(one));
  });
}

bool Exporter::never_has(std::string_view key) const {
  const std::vector<std::string> named = split(lacks, ' ');
  return std::ranges::find(named, key) != named.end() && !has_words_for(*this, key);
}

std::string exporter_of(const Scenario& scenario) {
  if (!scenario.where.contains("plan.framework")) return "";
  for (const char* by_accelerate : {"fsdp", "ddp", "huggingface"}) {
    if (scenario.trainer == by_accelerate) return "accelerate";
  }
  const auto found = std::ranges::find(all_exporters, scenario.trainer, &Exporter::word);
  return found == std::end(all_exporters) ? "" : std::string(found->word);
}

ExportedFile export_scenario(const Exporter& exporter, const Scenario& scenario) {
  Outgoing out(scenario);
  ExportedFile file;
  file.text = exporter.write(out);
  try {
    compare(exporter, out, imported_again(exporter, out, file.text, stated_values(scenario)), file);
  } catch (const ScenarioError& error) {
    add_refusal(fmt::format("{}: {}", error.key(), error.got()), file);
  }
  for (const std::string& why : out.refused()) add_refusal(why, file);
  return file;
}

}  // namespace foretrain

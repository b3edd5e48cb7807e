#include "reports/export/outgoing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/base/text.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/import/draft.hpp"
#include "reports/import/settings.hpp"

namespace foretrain {

namespace {

constexpr std::string_view model_key = "workload.train.model";

/// Keys that fill no member by themselves.
constexpr std::pair<const char*, std::int64_t TransformerConfig::*> numbers_of_model[] = {
    {"q_lora_rank", &TransformerConfig::q_lora_rank},
    {"kv_lora_rank", &TransformerConfig::kv_lora_rank},
    {"v_head_dim", &TransformerConfig::v_head_dim},
    {"rope_head_dim", &TransformerConfig::rope_head_dim},
    {"dense_layers", &TransformerConfig::dense_layers},
    {"dense_ffn_hidden", &TransformerConfig::dense_ffn_hidden},
    {"window", &TransformerConfig::window},
    {"full_attention_every", &TransformerConfig::full_attention_every}};

/// Keys of the transformer with what they hold, but for zeros and a single expert: what is not there.
void add_model(const TransformerConfig& model, std::map<std::string, std::string>& values) {
  for (const keys::Mapping* mapping : {&keys::transformer, &keys::language, &keys::encoder_decoder}) {
    for (const keys::Key& key : mapping->keys) {
      if (key.member.record != &keys::type_of_record<TransformerConfig> || key.member.written == nullptr) continue;
      const std::string value = key.member.written(&model, key);
      const bool of_experts = key.name.starts_with("expert") && model.experts == 1;
      if (value != "0" && !value.empty() && !of_experts) values[fmt::format("{}.{}", model_key, key.name)] = value;
    }
  }
  for (const auto& [key, member] : numbers_of_model) {
    if (model.*member > 0) values[fmt::format("{}.{}", model_key, key)] = std::to_string(model.*member);
  }
}

bool is_bare(const std::string& value) {
  if (value == "true" || value == "false" || value.starts_with('[')) return true;
  return !value.empty() && value.find_first_not_of("0123456789.") == std::string::npos;
}

/// TOML's and JSON's.
std::string as_value(const std::string& value) { return is_bare(value) ? value : nlohmann::json(value).dump(); }

}  // namespace

std::map<std::string, std::string> stated_values(const Scenario& scenario) {
  std::map<std::string, std::string> values;
  for (const ResolvedSetting& setting : resolved_values(scenario)) {
    const bool states =
        setting.from == ResolvedSetting::From::scenario || setting.from == ResolvedSetting::From::command_line;
    const bool is_model = setting.key.starts_with(model_key);
    const bool concerns = setting.key.starts_with("plan.") || setting.key.starts_with("workload.train.");
    if (states && concerns && !is_model) values[setting.key] = setting.value;
  }
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  if (const auto* model = std::get_if<TransformerConfig>(&train.model.shape)) add_model(*model, values);
  values.erase("workload.train.global_batch_per_gpu");
  if (scenario.plan.interleave == 1) values.erase("plan.interleave");  // one chunk a stage is no interleaving
  values["workload.train.global_batch"] = std::to_string(train.global_batch);
  values["workload.train.micro_batch"] = std::to_string(train.micro_batch);
  values.erase("workload.train.precision.preset");
  if (auto scaling = values.extract("workload.train.precision.fp8.scaling"); !scaling.empty()) {
    scaling.key() = "workload.train.fp8.scaling";  // both are the same
    values.insert(std::move(scaling));
  }
  values["workload.train.precision"] = name(train.precision);
  if (values.erase("plan.zero.stage") > 0) values["plan.zero"] = std::to_string(scenario.plan.zero);
  if (const auto offload = values.find("plan.offload"); offload != values.end()) {
    std::erase_if(offload->second, [](char c) { return c == '[' || c == ']'; });  // a word, or a list of them
  }
  if (train.training_samples && values.contains("workload.train.samples")) {
    values["workload.train.samples"] = fmt::format("{:.0f} samples", *train.training_samples);
  }
  return values;
}

Outgoing::Outgoing(const Scenario& scenario) : scenario_(scenario) {
  if (!std::holds_alternative<TrainWorkload>(scenario.workload)) {
    const SourcePosition* where = scenario.where.find("workload");
    throw ScenarioError(where != nullptr ? *where : scenario.where.document.where, "workload", "no training",
                        "workload.train, which trainers run");
  }
  stated_ = stated_values(scenario);
}

const TransformerConfig& Outgoing::transformer() const {
  const auto* model = std::get_if<TransformerConfig>(&train().model.shape);
  const bool decodes = model != nullptr && model->patch_size == 0 && model->pattern.empty();
  if (decodes && model->decoder_layers == 0) return *model;
  const SourcePosition* where = scenario_.where.find(model_key);
  throw ScenarioError(where != nullptr ? *where : scenario_.where.document.where, std::string(model_key),
                      fmt::format("{} is no language model of equal layers", train().model.name),
                      "`foretrain export deepspeed` or accelerate, whose files do not describe models");
}

std::optional<std::string> Outgoing::stated(const std::string& key) const {
  const auto found = stated_.find(key);
  return found == stated_.end() ? std::nullopt : std::optional(found->second);
}

bool Outgoing::leaves_out(std::string_view key) const {
  return std::ranges::any_of(left_out_, [key](std::string_view one) {
    return key == one || (key.starts_with(one) && key[one.size()] == '.');
  });
}

std::map<std::string, std::string> Outgoing::unread() const {
  std::map<std::string, std::string> values;
  for (const std::string_view key : unread_) {
    if (const auto value = stated(std::string(key))) values.emplace(key, *value);
  }
  return values;
}

void Outgoing::put(const std::string& theirs, std::string value) { settings_.emplace_back(theirs, std::move(value)); }

void Outgoing::put_rows(std::string_view group, std::initializer_list<std::string_view> without) {
  std::vector<std::string_view> said;
  for (const SettingRow& row : all_settings()) {
    const auto begins = [&](std::string_view beginning) { return row.theirs.starts_with(beginning); };
    const bool is_said = std::ranges::find(said, row.ours()) != said.end();
    if (row.is_alias || row.group != group || is_said || std::ranges::any_of(without, begins)) continue;
    const auto value = stated(std::string(row.ours()));
    const auto theirs = value ? row.their_value(*value) : std::nullopt;
    if (!theirs) continue;
    put(std::string(row.theirs), *theirs);
    said.push_back(row.ours());
  }
}

void put_offload(Outgoing& out, const std::string& optimizer, const std::string& parameters) {
  const Plan& plan = out.plan();
  const std::string device = plan.offload_to_disks ? "nvme" : "cpu";
  for (const auto& [is_offloaded, theirs] :
       {std::pair(plan.offload.optimizer, optimizer), std::pair(plan.offload.parameters, parameters)}) {
    if (!is_offloaded) continue;
    out.put(theirs, device);
    const bool has_more = theirs.ends_with(".device") && out.stated("plan.pinned_offload").has_value();
    if (has_more) {
      out.put(theirs.substr(0, theirs.rfind('.')) + ".pin_memory", plan.pinned_offload ? "true" : "false");
    }
  }
}

std::int64_t training_nodes(const Scenario& scenario) {
  const Cluster& cluster = scenario.cluster;
  return cluster.groups.empty() ? worker_gpus(scenario.plan, cluster) / cluster.gpus_per_node : cluster.nodes;
}

std::int64_t accumulated(const Outgoing& out) {
  return out.train().global_batch / (out.train().micro_batch * out.plan().data);
}

std::string as_yaml(const Outgoing& out) {
  YamlNode document = yaml_mapping({});
  for (const auto& [key, value] : out.settings()) {
    const bool is_list = value.starts_with('[');
    place_of(document, key, {}) =
        is_list ? yaml_list(split(value.substr(1, value.size() - 2), ',')) : yaml_scalar(value, {});
  }
  return yaml_text(document, {});
}

std::string as_toml(const Outgoing& out) {
  std::vector<std::pair<std::string, std::string>> sections;
  for (const auto& [key, value] : out.settings()) {
    const std::size_t dot = key.find('.');
    const std::string section = key.substr(0, dot);
    auto found = std::ranges::find(sections, section, &std::pair<std::string, std::string>::first);
    if (found == sections.end()) found = sections.insert(found, {section, ""});
    found->second += fmt::format("{} = {}\n", key.substr(dot + 1), as_value(value));
  }
  std::string text;
  for (const auto& [section, lines] : sections) {
    text += fmt::format("{}[{}]\n{}", text.empty() ? "" : "\n", section, lines);
  }
  return text;
}

std::string as_json(const Outgoing& out) {
  nlohmann::ordered_json json;
  for (const auto& [key, value] : out.settings()) {
    std::string pointer = "/" + key;
    std::ranges::replace(pointer, '.', '/');
    json[nlohmann::ordered_json::json_pointer(pointer)] = nlohmann::ordered_json::parse(as_value(value));
  }
  return json.dump(2) + "\n";
}

}  // namespace foretrain

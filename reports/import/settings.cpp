#include "reports/import/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/keys/key_tree.hpp"

namespace foretrain {

namespace {

constexpr std::int64_t most = 1'000'000'000;
constexpr int bytes_of_fp32 = 4;
constexpr const char* usual_node = "dgx-h100";
constexpr std::int64_t usual_gpus = 8;  ///< of that node
constexpr const char* usual_model = "llama3-8b";

/// "--micro-batch-size" → "micro-batch-size", "training.seq_len" → "seq_len".
std::string_view last_word(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  return name.substr(name.rfind('.') + 1);
}

bool says_none(std::string_view value) {
  return value == "null" || value == "None" || value == "none" || value == "auto" || value == "~";
}

std::optional<bool> truth(std::string_view value) {
  const std::string word = to_lower(value);
  if (word.empty() || word == "true" || word == "1" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "0" || word == "no" || word == "off") return false;
  return std::nullopt;
}

bool truth_of(const ForeignSetting& setting) {
  const auto value = truth(setting.value);
  if (!value) fail(setting, fmt::format("\"{}\" is neither true nor false", setting.value), "true or false");
  return *value;
}

std::int64_t number_of(const ForeignSetting& setting, std::int64_t least, std::int64_t greatest = most) {
  if (setting.value.find('$') != std::string::npos) {
    fail(setting, fmt::format("{} is not set in this file", setting.value),
         "its value in the file, or --set with the key that it decides");
  }
  try {
    std::string digits = setting.value;
    std::erase(digits, '_');  // of TOML and Python
    return parse_integer(digits, least, greatest);
  } catch (const UnitError& error) {
    fail(setting, error.got(), error.expected());
  }
}

void add_settings(const YamlNode& node, const std::string& path, std::vector<ForeignSetting>& settings) {
  for (const YamlEntry& entry : node.entries) {
    const std::string key = path.empty() ? entry.key : path + "." + entry.key;
    if (entry.value.is_scalar()) settings.push_back({key, entry.value.scalar, entry.where});
    if (entry.value.is_null()) settings.push_back({key, "null", entry.where});
    if (entry.value.is_mapping()) add_settings(entry.value, key, settings);
    if (!entry.value.is_sequence()) continue;
    std::vector<std::string> items;
    for (std::size_t i = 0; i < entry.value.items.size(); ++i) {
      const YamlNode& item = entry.value.items[i];
      if (item.is_scalar()) items.push_back(item.scalar);
      if (item.is_mapping()) add_settings(item, fmt::format("{}[{}]", key, i), settings);
    }
    settings.push_back({key, fmt::format("[{}]", fmt::join(items, ", ")), entry.where});
  }
}

std::optional<std::string> constant(const ForeignSetting& /*setting*/, const ValueWords& words) {
  return std::string(words.text);
}

constexpr SettingRow setting_rows[] = {
#define WORDS(...) \
  in_our_words, { __VA_ARGS__ }
#define WHERE_TRUE(text) \
  where_true, { text, "", "" }
#define ALWAYS(text) \
  constant, { text, "", "" }
#define SETTING(group, theirs, ours, ...) {false, #group, theirs, ours, __VA_ARGS__},
#define ALIAS(group, theirs, ours, ...) {true, #group, theirs, ours, __VA_ARGS__},
#include "reports/import/settings.def"
};

}  // namespace

void fail(const ForeignSetting& setting, std::string got, std::string expected) {
  throw ScenarioError(setting.where, setting.key, std::move(got), std::move(expected));
}

const ForeignSetting* Settings::find(std::string_view key) {
  const ForeignSetting* found = nullptr;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].key != key) continue;
    understood_[i] = true;
    found = &all_[i];
  }
  return found != nullptr && says_none(found->value) ? nullptr : found;
}

bool Settings::is_auto(std::string_view key) const {
  return std::ranges::any_of(all_, [key](const ForeignSetting& one) { return one.key == key && one.value == "auto"; });
}

bool Settings::flag(std::string_view key) {
  const ForeignSetting* setting = find(key);
  return setting != nullptr && truth_of(*setting);
}

std::optional<std::int64_t> Settings::whole(std::string_view key, std::int64_t least, std::int64_t greatest) {
  const ForeignSetting* setting = find(key);
  if (setting == nullptr || setting->value == "-1" || setting->value.find('$') != std::string::npos)
    return std::nullopt;
  return number_of(*setting, least, greatest);
}

void Settings::ignore(std::string_view beginning) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].key.starts_with(beginning)) understood_[i] = true;
  }
}

void Settings::ignore_without_time(std::string_view tool) {
#define NO_TIME(of, beginnings)                                                                            \
  for (const std::string& beginning : tool == #of ? split(beginnings, ',') : std::vector<std::string>()) { \
    ignore(trim(beginning));                                                                               \
  }
#include "reports/import/settings.def"
}

bool Settings::any_understood() const { return std::ranges::find(understood_, true) != understood_.end(); }

void Settings::leave_out_rest(Draft& draft) const {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (!understood_[i]) draft.not_understood(all_[i].where, named(all_[i]));
  }
}

std::span<const SettingRow> all_settings() { return setting_rows; }

std::string_view SettingRow::ours() const { return key.empty() ? keys::our_name(last_word(theirs)).value() : key; }

std::optional<std::string> SettingRow::their_value(const std::string& our_value) const {
  if (value == constant || value == where_true) {
    return our_value == words.text ? std::optional<std::string>("true") : std::nullopt;
  }
  if (value == whether_above_zero) return our_value == "true" ? "1.0" : "0.0";
  if (value == whole_number || value == positive_number) {
    return our_value == "0" ? std::nullopt : std::optional(our_value);
  }
  if (value == bytes_of_elements) {
    try {
      return fmt::format("{:.0f}", parse_quantity<Bytes>(our_value).value() / bytes_of_fp32);
    } catch (const UnitError&) {
      return std::nullopt;  // a framework's rule, by its name
    }
  }
  if (value != in_our_words) return our_value;
  for (const std::string& row : split_words(words.text)) {
    const std::size_t equals = row.find('=');
    if (row.substr(equals + 1) == our_value) return row.substr(0, equals);  // of words that are the same npos + 1 is 0
  }
  return std::nullopt;
}

void set_rows(Settings& settings, std::string_view group, Draft& draft) {
  for (const SettingRow& row : setting_rows) {
    if (row.group != group) continue;
    const ForeignSetting* setting = settings.find(row.theirs);
    const std::string ours(row.ours());
    if (setting == nullptr || draft.has(ours)) continue;
    if (auto value = row.value(*setting, row.words)) draft.set(ours, std::move(*value), *setting);
  }
}

std::optional<std::string> whole_number(const ForeignSetting& setting, const ValueWords& /*words*/) {
  return std::to_string(number_of(setting, 1));
}

std::optional<std::string> positive_number(const ForeignSetting& setting, const ValueWords& /*words*/) {
  if (setting.value == "-1") return std::nullopt;
  const std::int64_t value = number_of(setting, 0);
  return value > 0 ? std::optional(std::to_string(value)) : std::nullopt;
}

std::optional<std::string> true_or_false(const ForeignSetting& setting, const ValueWords& /*words*/) {
  return truth_of(setting) ? "true" : "false";
}

std::optional<std::string> whether_above_zero(const ForeignSetting& setting, const ValueWords& /*words*/) {
  if (setting.value.find('$') != std::string::npos) return std::nullopt;
  double limit = 0.0;
  const char* const end = setting.value.data() + setting.value.size();
  const auto [rest, error] = std::from_chars(setting.value.data(), end, limit);
  if (error != std::errc() || rest != end || !(limit >= 0.0)) {
    fail(setting, fmt::format("\"{}\" is no number", setting.value), "a number, 0 or more");
  }
  return limit > 0.0 ? "true" : "false";
}

std::optional<std::string> as_written(const ForeignSetting& setting, const ValueWords& /*words*/) {
  return setting.value;
}

std::optional<std::string> bytes_of_elements(const ForeignSetting& setting, const ValueWords& /*words*/) {
  const auto elements = positive_number(setting);
  return elements ? std::optional(fmt::format("{} B", bytes_of_fp32 * std::stoll(*elements))) : std::nullopt;
}

std::optional<std::string> where_true(const ForeignSetting& setting, const ValueWords& words) {
  return truth_of(setting) ? std::optional<std::string>(words.text) : std::nullopt;
}

std::optional<std::string> in_our_words(const ForeignSetting& setting, const ValueWords& words) {
  const std::string value = to_lower(setting.value);
  for (const std::string& row : split_words(words.text)) {
    const std::size_t equals = row.find('=');
    if (to_lower(row.substr(0, equals)) == value) return equals == std::string::npos ? row : row.substr(equals + 1);
  }
  fail(setting,
       words.wrong.empty() ? fmt::format("\"{}\" is not modelled", setting.value)
                           : fmt::format("{} \"{}\"", words.wrong, setting.value),
       std::string(words.right));
}

std::vector<ForeignSetting> flat_settings(const YamlNode& document) {
  std::vector<ForeignSetting> settings;
  add_settings(document, "", settings);
  return settings;
}

std::int64_t set_cluster(Draft& draft, const TrainingSize& size) {
  if (size.replica > most) {
    throw ScenarioError(size.where, "", fmt::format("a replica of {} GPUs", size.replica), "at most 10⁹");
  }
  draft.assume("cluster.node", usual_node, "the file does not name the machines; --set cluster.node=NAME");
  std::optional<std::int64_t> per_node = size.gpus_per_node;
  if (!per_node && size.gpus && size.nodes && *size.gpus % *size.nodes == 0) per_node = *size.gpus / *size.nodes;
  std::optional<std::int64_t> nodes = size.nodes;
  const std::int64_t each = per_node.value_or(size.gpus ? std::min(*size.gpus, usual_gpus) : usual_gpus);
  if (!nodes && size.gpus && *size.gpus % each == 0) nodes = *size.gpus / each;
  if (nodes) {
    draft.set("cluster.nodes", std::to_string(*nodes), size.where, size.told_by);
  } else {
    nodes = std::lcm(size.replica, each) / each;
    draft.assume("cluster.nodes", std::to_string(*nodes),
                 "the fewest that hold a replica of the model; not in the file");
  }
  if (per_node) {
    draft.set("cluster.gpus_per_node", std::to_string(*per_node), size.where, size.told_by);
  } else if (each != usual_gpus) {
    draft.set("cluster.gpus_per_node", std::to_string(each), size.where, size.told_by);
  }
  return *nodes * each;
}

std::int64_t number_of(const Draft& draft, std::string_view key) {
  return std::max(number_behind("n" + draft.scalar(key, "1"), "n").value_or(1), 1);
}

void set_batch_of_rank(Draft& draft, std::int64_t samples, const ForeignSetting& says) {
  if (draft.has("workload.train.global_batch")) return;
  double share = static_cast<double>(samples);
  for (const char* factor : {"plan.tensor", "plan.pipeline", "plan.context"}) {
    share /= static_cast<double>(number_of(draft, factor));
  }
  draft.set("workload.train.global_batch_per_gpu", fmt::format("{:.12g}", share), says);
}

void assume_model(Draft& draft) {
  draft.assume("workload.train.model", usual_model,
               "the file does not describe the model; --set workload.train.model=NAME");
}

void set_offload(Settings& settings, Draft& draft, const std::string& optimizer, const std::string& parameters) {
  constexpr std::string_view own_mapping = "device";
  std::vector<std::string> parts;
  const ForeignSetting* says = nullptr;
  for (const auto& [theirs, ours] : {std::pair(optimizer, "optimizer"), std::pair(parameters, "parameters")}) {
    const ForeignSetting* device = settings.find(theirs);
    if (device == nullptr) continue;
    if (device->value == "nvme") draft.set("plan.offload_to", "disks", *device);
    if (device->value != "cpu" && device->value != "nvme") fail(*device, "an unknown device", "cpu, nvme or none");
    parts.emplace_back(ours);
    says = device;
    if (last_word(theirs) != own_mapping) continue;
    const std::string beside = theirs.substr(0, theirs.size() - own_mapping.size());
    if (const ForeignSetting* pinned = settings.find(beside + "pin_memory")) {
      draft.set("plan.pinned_offload", pinned->value, *pinned);
    }
    settings.ignore(beside);
  }
  if (says != nullptr) draft.set("plan.offload", yaml_list(parts, says->where), *says);
}

std::string finished_training(Settings& settings, Draft& draft, std::string_view tool) {
  settings.ignore_without_time(tool);
  if (!settings.any_understood()) {
    std::vector<std::string_view> known;
    for (const SettingRow& row : setting_rows) {
      if (row.group == tool && known.size() < 3) known.push_back(row.theirs);
    }
    throw ScenarioError(draft.nowhere(), "", fmt::format("none of {}'s settings", tool),
                        fmt::format("its keys, as {}, …", fmt::join(known, ", ")));
  }
  settings.leave_out_rest(draft);
  return finished_scenario(draft, tool);
}

}  // namespace foretrain

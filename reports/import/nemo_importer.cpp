// Megatron-Bridge's configuration (megatron/bridge/training/config.py), NeMo's: what it states are arguments of
// Megatron-LM, under the names of its classes.

#include <algorithm>
#include <optional>

#include "model/base/text.hpp"
#include "reports/import/importer.hpp"
#include "reports/import/settings.hpp"
#include "reports/import/training_log.hpp"

namespace foretrain {

namespace {

struct NemoName {
  std::string_view argument, key;
  bool inverse;
};
constexpr NemoName nemo_names[] = {
#define NEMO(argument, key) {argument, key, false},
#define NEMO_OFF(argument, key) {argument, key, true},
#include "reports/import/settings.def"
};

/// A recipe by its name ("bf16_with_fp8_current_scaling_mixed"), or the type in a mapping; "" for fp32.
std::string precision_argument(std::string_view recipe) {
  const std::string word = to_lower(recipe);
  if (word.find("nvfp4") != std::string::npos) return "--fp4-format";
  for (const char* type : {"fp8", "bf16", "fp16"}) {
    if (word.find(type) != std::string::npos) return std::string("--") + type;
  }
  return "";
}

/// "bf16_with_fp8_subchannel_scaling_mixed" says one; "" for others.
std::string fp8_recipe(std::string_view recipe) {
  static constexpr std::pair<const char*, const char*> recipes[] = {
      {"mxfp8", "mxfp8"}, {"subchannel", "blockwise"}, {"current", "tensorwise"}, {"delayed", "delayed"}};
  for (const auto& [word, argument] : recipes) {
    if (to_lower(recipe).find(word) != std::string::npos) return argument;
  }
  return "";
}

bool is_word(const ForeignSetting& setting, std::string_view word) { return to_lower(setting.value) == word; }

/// The argument of Megatron-LM; nothing for what is off, unless NeMo has it on by itself.
std::optional<ForeignSetting> argument_of(ForeignSetting setting) {
  setting.written = setting.key;
  const auto* const row = std::ranges::find(nemo_names, setting.key, &NemoName::key);
  if (row != std::end(nemo_names)) {
    setting.key = row->argument;
    if (row->inverse) setting.value = is_word(setting, "true") ? "false" : "true";
  } else if (setting.key == "mixed_precision" || setting.key == "mixed_precision.dtype") {
    setting.key = precision_argument(setting.value);
    setting.value = setting.key.empty() ? "false" : "true";
  } else {
    setting.key = "--" + setting.key.substr(setting.key.rfind('.') + 1);
    std::ranges::replace(setting.key, '_', '-');
  }
  const bool on_by_itself = row != std::end(nemo_names) && !row->inverse &&
                            (setting.written.starts_with("ddp.") || setting.written.starts_with("comm_overlap."));
  const bool is_left = on_by_itself || setting.key == "--sequence-parallel" || !is_word(setting, "false");
  return is_left ? std::optional(std::move(setting)) : std::nullopt;
}

}  // namespace

std::string nemo_key(std::string_view argument, bool& inverse) {
  const auto* const row = std::ranges::find(nemo_names, argument, &NemoName::argument);
  inverse = row != std::end(nemo_names) && row->inverse;
  if (row != std::end(nemo_names)) return std::string(row->key);
  std::string word(argument.substr(2));
  std::ranges::replace(word, '-', '_');
  return "model." + word;
}

std::string import_nemo(const ImportInput& input) {
  const YamlNode config = parse_config(input, "a configuration of Megatron-Bridge: model: { num_layers: …, … }");
  std::vector<ForeignSetting> settings;
  for (const ForeignSetting& setting : flat_settings(config)) {
    constexpr std::string_view understood[] = {"model", "train",        "optimizer",      "ddp",
                                               "dist",  "comm_overlap", "mixed_precision"};
    const std::string section = setting.key.substr(0, setting.key.find('.'));
    if (std::ranges::find(understood, section) == std::end(understood)) continue;  // data, checkpoints, messages
    if (auto argument = argument_of(setting)) settings.push_back(std::move(*argument));
    const std::string recipe = section == "mixed_precision" ? fp8_recipe(setting.value) : "";
    if (!recipe.empty()) settings.push_back({"--fp8-recipe", recipe, setting.where});
    if (setting.key == "model.num_query_groups") settings.push_back({"--group-query-attention", "", setting.where});
  }
  return megatron_scenario(input, Settings(std::move(settings)), "nemo");
}

}  // namespace foretrain

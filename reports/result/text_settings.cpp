#include "reports/result/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "model/base/format.hpp"
#include "reports/print/table.hpp"

namespace foretrain {

namespace {

/// "deepseek-v3 · 671 B parameters · 37.6 B active per token".
std::string model_line(const Result& result) {
  const TrainResult* train = result.train();
  if (train == nullptr || train->model.empty()) return "";
  std::string text = fmt::format("{} · {} parameters", train->model, format_count(train->parameters));
  if (train->active_parameters < train->parameters) {
    text += fmt::format(" · {} active per token", format_count(train->active_parameters));
  }
  return labelled("Model", text);
}

/// Whether a setting is shown without --verbose: in short lines, if it is stated or one of the main ones.
bool is_main(const Setting& setting) {
  static constexpr std::array detailed_lines = {"Gradients", "Weights", "Checkpoints"};
  static constexpr std::array details = {
      "P2P",       "schedule",  "context method", "expert dispatch", "expert overlap", "sequence parallel",
      "gradients", "attention", "execution"};
  if (std::ranges::find(detailed_lines, setting.line) != detailed_lines.end()) return false;
  if (setting.name == "training length") return false;  // beside the time to train
  return !setting.by_default || std::ranges::find(details, setting.name) == details.end();
}

/// "tensor 8", "bf16*", "sequence parallel": values that name themselves stand alone; an asterisk marks defaults.
std::string setting_text(const Setting& s) {
  static constexpr std::array self_naming = {"", "precision", "optimizer"};
  const bool alone = std::ranges::find(self_naming, s.name) != self_naming.end();
  const std::string name = s.name == "global batch" ? "global" : s.name == "server placement" ? "placement" : s.name;
  const std::string text = alone ? s.value : s.value == "yes" ? name : name + " " + s.value;
  return text + (s.by_default ? "*" : "");
}

}  // namespace

std::string settings_section(const Result& result, bool verbose) {
  std::string text = model_line(result), values;
  std::vector<Setting> settings = result.settings;
  if (!verbose) std::erase_if(settings, [](const Setting& s) { return !is_main(s); });
  const bool any_default = std::ranges::any_of(settings, &Setting::by_default);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    values += (values.empty() ? "" : " · ") + setting_text(settings[i]);
    const bool last = i + 1 == settings.size();
    if (!last && settings[i + 1].line == settings[i].line) continue;
    text += labelled(settings[i].line, values + (last && any_default ? " (*: not in the scenario)" : ""));
    values.clear();
  }
  return text.empty() ? "" : text + "\n";
}

std::string label_of(const Setting& setting) {
  static constexpr std::array clear = {"Batch", "Plan", "Training"};
  if (setting.line == "Gradients") return (setting.name == "algorithm" ? "gradient sync " : "gradient ") + setting.name;
  if (setting.name == "P2P") return "pipeline P2P";
  if (setting.line == "Weights") return setting.name.empty() ? "weight all-gather" : "weight " + setting.name;
  const bool by_itself = std::ranges::find(clear, setting.line) != clear.end();
  return setting.name.empty() ? setting.line : by_itself ? setting.name : setting.line + " " + setting.name;
}

bool is_whole_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace foretrain

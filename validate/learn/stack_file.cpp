#include "validate/learn/stack_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "model/scenario/hardware/calibration_reader.hpp"
#include "model/scenario/keys/keys.hpp"
#include "model/scenario/plan/trainer_reader.hpp"

namespace foretrain {

namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// In one line.
std::string flow(const YamlNode& node) {
  if (node.is_scalar()) return quoted(node.scalar);
  std::string inner;
  const auto add = [&inner](const std::string& part) { inner += (inner.empty() ? "" : ", ") + part; };
  for (const YamlNode& item : node.items) add(flow(item));
  for (const YamlEntry& entry : node.entries) add(entry.key + ": " + flow(entry.value));
  return node.is_sequence() ? "[ " + inner + " ]" : "{ " + inner + " }";
}

std::string percent(double share) { return fmt::format("{:.3g} %", 100.0 * share); }

/// Values one standard deviation around the position, the lower one first.
std::pair<std::string, std::string> range_of(const LearnedParameter& learned) {
  double low = learned.position - learned.spread, high = learned.position + learned.spread;
  if (learned.parameter.value(low) > learned.parameter.value(high)) std::swap(low, high);
  return {learned.parameter.text(low), learned.parameter.text(high)};
}

/// "from 2900 us to 3300 us".
std::string range_text(const LearnedParameter& learned) {
  const auto [low, high] = range_of(learned);
  return fmt::format("from {} to {}", low, high);
}

std::string source(const LearnedParameter& learned, const LearnedFrom& from) {
  return fmt::format("{}: {} runs, 1 σ range {}", from.table, learned.runs, range_text(learned));
}

std::string setting(const std::string& key, const std::string& value, const std::string& source) {
  return fmt::format("  {}: {{ value: {}, kind: fit, source: {} }}\n", key, value, quoted(source));
}

/// Parameters of the scenario's part that the member of StackParameter names.
std::vector<LearnedParameter> determined(const LearnedStack& stack, auto StackParameter::*part) {
  std::vector<LearnedParameter> found;
  for (const LearnedParameter& one : stack.parameters) {
    if (one.determined && one.parameter.*part) found.push_back(one);
  }
  return found;
}

std::string settings(const LearnedStack& stack, const LearnedFrom& from) {
  std::string text = "settings:\n";
  const std::vector<LearnedParameter> learned = determined(stack, &StackParameter::setter);
  for (const LearnedParameter& one : learned) {
    text += setting(one.parameter.name, one.parameter.text(one.position), source(one, from));
  }
  const MappingReader base = named_trainer(Field(yaml_scalar(from.base, {}), "--base"));
  for (const YamlEntry& entry : base["settings"].node().entries) {
    const bool known = std::ranges::any_of(learned, [&](const auto& one) { return one.parameter.name == entry.key; });
    if (!known) text += fmt::format("  {}: {}\n", entry.key, flow(entry.value));
  }
  if (const auto refuses = base.find("refuses")) text += "refuses: " + flow(refuses->node()) + "\n";
  return text;
}

std::string constants(const LearnedStack& stack, const LearnedFrom& from) {
  std::string text;
  for (const LearnedParameter& one : determined(stack, &StackParameter::constant)) {
    text += setting(one.parameter.name, one.parameter.text(one.position), source(one, from));
  }
  return text.empty() ? "" : "constants:\n" + text;
}

/// One curve for all numbers of nodes.
std::string cluster(const LearnedStack& stack, const LearnedFrom& from) {
  std::string curve, sources;
  for (const LearnedParameter& one : determined(stack, &StackParameter::nodes)) {
    curve += fmt::format("{}{}: {}", curve.empty() ? "" : ", ", one.parameter.nodes, one.parameter.text(one.position));
    sources += fmt::format("; on {} machines {} runs, likely {}", one.parameter.nodes, one.runs, range_text(one));
  }
  if (curve.empty()) return "";
  return "cluster:\n" + setting("network.scaling", quoted("{ " + curve + " }"), from.table + sources);
}

/// Intervals of all settings that affect a step and are uncertain in the written digits.
std::string likely(const LearnedStack& stack) {
  std::string text;
  for (const LearnedParameter& one : stack.parameters) {
    if (one.parameter.of_memory) continue;
    const auto [low, high] = range_of(one);
    if (low != high) text += fmt::format("    {}: [ {}, {} ]\n", one.parameter.name, low, high);
  }
  return text.empty() ? "" : "  likely:\n" + text;
}

std::string learned(const LearnedStack& stack, const LearnedFrom& from) {
  std::string text = "learned:\n";
  const auto add = [&text](const char* key, const std::string& value) {
    text += fmt::format("  {}: {}\n", key, value);
  };
  const auto [least, most] = std::ranges::minmax(from.nodes);
  add("from", quoted(from.table));
  add("runs", std::to_string(from.names.size()));
  add("nodes", fmt::format("[ {}, {} ]", least, most));
  if (from.groups[0] > 0) add("groups", fmt::format("[ {} ]", fmt::join(from.groups, ", ")));
  add("error", percent(stack.left_out.mean));
  add("median_error", percent(stack.left_out.median));
  if (stack.scaled) add("error_of_other_scales", percent(stack.scaled->mean));
  if (stack.left_out.pairs) add("pairs_right", percent(*stack.left_out.pairs));
  if (stack.left_out.regret) add("regret", percent(*stack.left_out.regret));
  if (stack.left_out.memory) {
    add("memory_error", percent(*stack.left_out.memory));
    add("memory_shortfall", percent(std::expm1(stack.memory_shortfall)));
  }
  add("spread", percent(std::expm1(stack.spread)));
  text += likely(stack);
  if (stack.unexplained.empty()) return text;
  std::string names;
  for (const std::size_t run : stack.unexplained) names += (names.empty() ? "" : ", ") + quoted(from.names[run]);
  add("unexplained", "[ " + names + " ]");
  return text;
}

using StackJson = nlohmann::ordered_json;

void add_if_known(StackJson& json, const char* key, const std::optional<double>& value) {
  if (value) json[key] = *value;
}

StackJson json_of(const LearnedErrors& errors) {
  StackJson json = {{"mean", errors.mean}, {"median", errors.median}};
  add_if_known(json, "memory", errors.memory);
  add_if_known(json, "pairs", errors.pairs);
  add_if_known(json, "regret", errors.regret);
  return json;
}

/// With what it is known to lie between; where it stays as assumed, what is known of it beforehand.
StackJson json_of(const LearnedParameter& learned) {
  const double one = learned.parameter.value(learned.position - learned.spread);
  const double other = learned.parameter.value(learned.position + learned.spread);
  return {{"name", learned.parameter.name},
          {"meaning", learned.parameter.meaning},
          {"value", learned.parameter.value(learned.position)},
          {"low", std::min(one, other)},
          {"high", std::max(one, other)},
          {"runs", learned.runs},
          {"learned", learned.determined}};
}

/// predicted / measured - 1.
std::optional<double> error_of(const std::optional<double>& left) {
  return left ? std::optional(std::expm1(*left)) : std::nullopt;
}

StackJson json_of(const LearnedCase& one, const LearnedFrom& from) {
  StackJson json = {{"case", from.names[one.run]}, {"nodes", from.nodes[one.run]}};
  const auto add = [&json](const std::string& key, const RunResidual& left) {
    add_if_known(json, key.c_str(), error_of(left.time));
    add_if_known(json, ("memory_" + key).c_str(), error_of(left.memory));
  };
  add("error_assumed", one.assumed);
  add("error", one.fitted);
  add("error_left_out", one.left_out);
  return json;
}

constexpr std::string_view scaling_names = "cluster.network.scaling.";

double value_of(const Field& text, const StackParameter& parameter) {
  if (parameter.constant != nullptr) return read_constant_value(text, *parameter.constant);
  switch (parameter.scale) {
    case StackParameter::Scale::share:
      return learned_share(text);
    case StackParameter::Scale::time:
      return text.as<Seconds>({.zero = Zero::allowed}).value();
    default:
      return text.as<double>();
  }
}

/// All settings that a file with these names may speak of.
std::vector<StackParameter> parameters_of(const YamlNode& likely, const Scenario& usual) {
  RunsAtHand runs{.nodes = {}, .pipelined = true, .usual = &usual};
  for (const YamlEntry& entry : likely.entries) {
    if (entry.key.starts_with(scaling_names)) runs.nodes.push_back(std::atoi(&entry.key[scaling_names.size()]));
  }
  return stack_parameters(runs);
}

}  // namespace

std::string stack_file(const LearnedStack& stack, const LearnedFrom& from) {
  std::string text = "kind: framework\n";
  text += "name: " + quoted("learned from " + from.table) + "\n";
  text += "description: " +
          quoted(fmt::format("{} runs of {}; other settings as {}", from.names.size(), from.table, from.base)) + "\n";
  return text + settings(stack, from) + constants(stack, from) + cluster(stack, from) + learned(stack, from);
}

std::string to_text(const LearnedStack& stack, const LearnedFrom& from) {
  std::string text =
      fmt::format("Learned from {} runs of {}; other settings as {}\n\n", from.names.size(), from.table, from.base);
  text += fmt::format("  {:<33} {:>10} {:>24} {:>6}\n", "", "value", "range (1 σ)", "runs");
  for (const LearnedParameter& one : stack.parameters) {
    const std::string range = one.determined ? range_text(one).substr(std::string("from ").size()) : "prior";
    text += fmt::format("  {:<33} {:>10} {:>24} {:>6}\n", one.parameter.meaning, one.parameter.text(one.position),
                        range, one.runs);
  }
  const auto row = [&text](const char* name, const LearnedErrors& errors) {
    const auto cell = [](const std::optional<double>& share) { return share ? percent(*share) : ""; };
    text += fmt::format("  {:<33} {:>8} {:>8} {:>8} {:>8} {:>8}\n", name, percent(errors.mean), percent(errors.median),
                        cell(errors.memory), cell(errors.pairs), cell(errors.regret));
  };
  text += fmt::format("\n  {:<33} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "Step-time error", "mean", "median", "memory",
                      "pairs", "regret");
  row("before learning", stack.assumed);
  row("after learning", stack.fitted);
  row("5-fold cross-validation", stack.left_out);
  if (stack.scaled) row("cross-validation by node count", *stack.scaled);
  text += fmt::format(
      "  pairs: choices for one task that are ranked as measured\n"
      "  regret: excess of the predicted best over the measured best\n\n"
      "  90 % of left-out steps lie within {} of their prediction.\n",
      percent(std::expm1(stack.spread)));
  for (const std::size_t run : stack.unexplained) {
    text += fmt::format("  Unexplained by any setting: {}\n", from.names[run]);
  }
  return text;
}

std::string to_json(const LearnedStack& stack, const LearnedFrom& from) {
  StackJson json = {{"from", from.table}, {"base", from.base}, {"parameters", StackJson::array()}};
  for (const LearnedParameter& one : stack.parameters) json["parameters"].push_back(json_of(one));
  json["errors"] = {
      {"assumed", json_of(stack.assumed)}, {"fitted", json_of(stack.fitted)}, {"left_out", json_of(stack.left_out)}};
  if (stack.scaled) json["errors"]["other_scales"] = json_of(*stack.scaled);
  json["spread"] = std::expm1(stack.spread);
  if (stack.left_out.memory) json["memory_shortfall"] = std::expm1(stack.memory_shortfall);
  json["cases"] = StackJson::array();
  for (const LearnedCase& one : stack.cases) json["cases"].push_back(json_of(one, from));
  json["unexplained"] = StackJson::array();
  for (const std::size_t run : stack.unexplained) json["unexplained"].push_back(from.names[run]);
  json["failed"] = StackJson::array();
  for (const auto& [name, why] : from.failed) json["failed"].push_back({{"case", name}, {"why", why}});
  json["stack"] = stack_file(stack, from);
  return json.dump(2, ' ', false, StackJson::error_handler_t::replace) + "\n";
}

std::vector<LikelySetting> likely_settings(const MappingReader& stack, const Scenario& usual) {
  const std::string remedy = "a file that `foretrain learn` of this version wrote";
  const auto learned = stack.find("learned");
  if (!learned) stack.fail("kind", "not a settings profile: nothing was learned from runs", remedy);
  const auto likely = learned->mapping().find("likely");
  if (!likely) learned->fail("no intervals of its settings", remedy);
  const std::vector<StackParameter> parameters = parameters_of(likely->node(), usual);
  std::vector<LikelySetting> settings;
  for (const YamlEntry& entry : likely->node().entries) {
    const Field field(entry.value, join_path(likely->path(), entry.key));
    const auto known = std::ranges::find(parameters, entry.key, &StackParameter::name);
    if (known == parameters.end()) field.fail("no setting that runs teach", remedy);
    const std::vector<Field> values = field.list();
    if (values.size() != 2) field.fail("no two values", "[ low, high ]");
    settings.push_back({*known, value_of(values[0], *known), value_of(values[1], *known)});
  }
  return settings;
}

}  // namespace foretrain

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "validate/learn/stack_file.hpp"

namespace foretrain {

namespace {

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

}  // namespace

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

}  // namespace foretrain

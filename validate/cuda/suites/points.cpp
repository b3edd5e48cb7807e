#include "validate/cuda/suites/points.hpp"

namespace foretrain::gpu {

namespace {

void name_field(std::string& name, const std::string& key, const std::string& value) {
  name += " " + key + "=";
  for (const char c : value) {
    if (c != ' ') name += c;
  }
}

}  // namespace

Record operator_point(const Fields& operator_keys, const Fields& parameters) {
  Record record;
  record.unit = "s";
  record.name = operator_keys.front().second;
  for (const auto& [key, value] : operator_keys) {
    record.scenario["workload.operator." + key] = value;
    if (key != "kind") name_field(record.name, key, value);
  }
  for (const auto& [key, value] : parameters) {
    record.parameters[key] = value;
    name_field(record.name, key, value);
  }
  return record;
}

Record plain_point(const std::string& what, const Fields& parameters) {
  Record record;
  record.unit = "s";
  record.name = what;
  record.parameters["what"] = what;
  for (const auto& [key, value] : parameters) {
    record.parameters[key] = value;
    name_field(record.name, key, value);
  }
  return record;
}

std::string bytes_text(std::size_t bytes) { return std::to_string(bytes) + " B"; }

}  // namespace foretrain::gpu

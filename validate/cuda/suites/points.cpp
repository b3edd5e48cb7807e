#include "validate/cuda/suites/points.hpp"

namespace foretrain::gpu {

namespace {

void add_to_name(Record& record, const std::string& key, const std::string& value) {
  record.name += " " + key + "=";
  for (const char c : value) {
    if (c != ' ') record.name += c;
  }
}

void add(Record& record, const Fields& parameters) {
  record.unit = "s";
  for (const auto& [key, value] : parameters) {
    record.parameters[key] = value;
    add_to_name(record, key, value);
  }
}

}  // namespace

Record operator_point(const Fields& operator_keys, const Fields& parameters) {
  Record record;
  record.name = operator_keys.front().second;
  for (const auto& [key, value] : operator_keys) {
    record.scenario["workload.operator." + key] = value;
    if (key != "kind") add_to_name(record, key, value);
  }
  add(record, parameters);
  return record;
}

Record plain_point(const std::string& what, const Fields& parameters) {
  Record record;
  record.name = record.parameters["what"] = what;
  add(record, parameters);
  return record;
}

std::string bytes_text(std::size_t bytes) { return std::to_string(bytes) + " B"; }

}  // namespace foretrain::gpu

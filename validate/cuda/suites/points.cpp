#include "validate/cuda/suites/points.hpp"

namespace foretrain::gpu {

namespace {

/// A record of seconds, named by its quantity and its distinguishing parameters.
Record named(std::string name, const Fields& parameters) {
  Record record;
  record.unit = "s";
  record.name = std::move(name);
  for (const auto& [key, value] : parameters) {
    record.parameters[key] = value;
    record.name += " " + key + "=" + value;
  }
  return record;
}

}  // namespace

Record operator_point(const OperatorSpec& spec, const Fields& parameters) {
  Record record = named(name_of(spec), parameters);
  record.scenario = scenario_of(spec);
  return record;
}

Record plain_point(const std::string& what, const Fields& parameters) {
  Record record = named(what, parameters);
  record.parameters["what"] = what;
  return record;
}

std::string bytes_text(std::size_t bytes) { return std::to_string(bytes) + " B"; }

}  // namespace foretrain::gpu

#include "validate/cuda/math/operator_spec.hpp"

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <type_traits>

namespace foretrain::gpu {

namespace {

[[noreturn]] void fail(const OperatorSpec& spec, const std::string& key, const std::string& why) {
  throw std::invalid_argument(spec.kind + ": " + key + ": " + why);
}

const std::string& required(const OperatorSpec& spec, const std::string& key) {
  const auto found = spec.fields.find(key);
  if (found == spec.fields.end()) fail(spec, key, "missing");
  return found->second;
}

template <typename Value>
Value number(const OperatorSpec& spec, const std::string& key, const std::string& text) {
  Value value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value)) return value;
  fail(spec, key, "\"" + text + "\" is no " + (std::is_integral_v<Value> ? "whole number" : "number"));
}

std::string without_spaces(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ') out += c;
  }
  return out;
}

}  // namespace

std::int64_t OperatorSpec::integer(const std::string& key) const {
  return number<std::int64_t>(*this, key, required(*this, key));
}

std::int64_t OperatorSpec::integer_or(const std::string& key, std::int64_t fallback) const {
  return fields.count(key) != 0 ? integer(key) : fallback;
}

double OperatorSpec::number_or(const std::string& key, double fallback) const {
  if (!fields.contains(key)) return fallback;
  return number<double>(*this, key, fields.at(key));
}

bool OperatorSpec::flag(const std::string& key) const {
  const std::string text = text_or(key, "false");
  if (text != "true" && text != "false") fail(*this, key, "\"" + text + "\" is neither true nor false");
  return text == "true";
}

std::string OperatorSpec::text_or(const std::string& key, const std::string& fallback) const {
  const auto found = fields.find(key);
  return found == fields.end() ? fallback : found->second;
}

std::pair<std::int64_t, std::int64_t> OperatorSpec::pair_or(const std::string& key, std::int64_t fallback) const {
  if (fields.count(key) == 0) return {fallback, fallback};
  const std::string text = without_spaces(fields.at(key));
  const std::size_t comma = text.find(',');
  if (text.empty() || text.front() != '[') {
    const std::int64_t both = number<std::int64_t>(*this, key, text);
    return {both, both};
  }
  if (text.back() != ']' || comma == std::string::npos) fail(*this, key, "\"" + text + "\" is no [height, width]");
  return {number<std::int64_t>(*this, key, text.substr(1, comma - 1)),
          number<std::int64_t>(*this, key, text.substr(comma + 1, text.size() - comma - 2))};
}

std::int64_t element_size(const OperatorSpec& spec) {
  const std::string precision = spec.text_or("precision", "fp32");
  if (precision == "fp32" || precision == "tf32") return 4;
  if (precision == "fp64") return 8;
  return precision == "fp16" || precision == "bf16" ? 2 : 1;
}

Traffic traffic_of(const OperatorSpec& spec) {
  Traffic traffic;
  const std::int64_t size = element_size(spec);
  if (spec.kind == "traffic") {
    traffic = {std::llround(spec.number_or("read", 0.0)), std::llround(spec.number_or("written", 0.0)),
               spec.text_or("pattern", "")};
  } else if (spec.kind == "elementwise" || spec.kind == "reduction") {
    const std::int64_t tensor = spec.integer("elements") * size;
    traffic = {spec.integer_or("inputs", 1) * tensor, spec.integer_or("outputs", 1) * tensor, spec.kind};
  } else if (spec.kind == "embedding" && spec.text_or("pass", "forward") == "forward") {
    const std::int64_t rows = spec.integer("tokens") * spec.integer("width") * size;
    traffic = {rows, rows, "gather"};
  } else {
    throw std::invalid_argument("no operator \"" + spec.kind + "\" runs on a GPU");
  }
  if (traffic.read < 0 || traffic.written < 0) throw std::invalid_argument(spec.kind + ": a size below 0");
  return traffic;
}

OperatorSpec with_precision_of(OperatorSpec spec, int capability) {
  const auto precision = spec.fields.find("precision");
  if (capability < 80 && precision != spec.fields.end() && precision->second == "bf16") precision->second = "fp16";
  return spec;
}

OperatorSpec as_run(OperatorSpec spec, int capability) {
  constexpr int own_kernels_since = 90;
  const bool another = spec.kind == "attention" && spec.text_or("native", "true") == "false";
  if (another && capability >= own_kernels_since) spec.fields.erase("native");
  return spec;
}

std::string name_of(const OperatorSpec& spec) {
  std::string name = spec.kind;
  for (const auto& [key, value] : spec.fields) name += " " + key + "=" + without_spaces(value);
  return name;
}

std::map<std::string, std::string> scenario_of(const OperatorSpec& spec) {
  std::map<std::string, std::string> scenario = {{"workload.operator.kind", spec.kind}};
  for (const auto& [key, value] : spec.fields) scenario["workload.operator." + key] = value;
  return scenario;
}

}  // namespace foretrain::gpu

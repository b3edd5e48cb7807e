#include <fmt/format.h>

#include <array>
#include <utility>

#include "model/base/words.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/overrides.hpp"

namespace foretrain {

namespace {

std::string read_architecture(const Field& field) {
  const std::span<const std::string_view> known = key_of(keys::gpu, "architecture").value.forms().front().words;
  return std::string(known[field.word(known)]);
}

/// `{ fp32: 19.5 TFLOP/s, … }`; formats that are not listed have no unit of their own.
std::array<FlopsPerSecond, precision_count> read_rates(const Field& field, FigureLog& log) {
  const MappingReader rates = field.mapping(keys::rates);
  std::array<FlopsPerSecond, precision_count> result{};
  for (std::size_t p = 0; p < result.size(); ++p) {
    const std::string_view word = names_of<Precision>[p];
    if (rates.has(word)) result[p] = figure<FlopsPerSecond>(rates, word, log);
  }
  return result;
}

/// `processor:` of a device that is one. All rates are those of one core with nothing else to do.
Processor read_processor(const Field& field, FigureLog& log) {
  const MappingReader keys = field.mapping(keys::processor);
  Processor processor;
  keys.fill(processor);
  if (processor.share > 1.0) keys.fail("share", "more than the whole core", "a share above 0, up to 1");
  constexpr double most_spread = 0.2;  // of step.device_spread
  keys.fail_if(processor.spread > most_spread, "spread", "cores that differ so much are of several kinds", "0 to 0.2");
  for (const keys::Key& key : keys::processor.keys) log.add(keys, {key.name});
  return processor;
}

/// A preset may have a preset of its own: `depth` is how many stand before it.
YamlNode resolved(const Field& field, Catalogue section, int depth) {
  constexpr int deepest = 8;
  if (field.is_scalar()) {
    if (depth > deepest) field.fail("presets without an end", "a file that needs no other");
    const YamlNode& file = cached_yaml_file(catalogue_file(section, field).string());
    return resolved(Field(file, field.path()), section, depth);
  }
  const auto preset = field.find("preset");
  if (!preset) return field.node();
  YamlNode changes = field.node();
  changes.erase("preset");
  return merged(resolved(*preset, section, depth + 1), changes);
}

}  // namespace

YamlNode resolve_preset(const Field& field, Catalogue section) { return resolved(field, section, 0); }

Gpu read_gpu(const Field& written) {
  const YamlNode document = resolve_preset(written, Catalogue::gpu);
  const Field field(document, written.path());
  const MappingReader gpu = field.mapping(keys::gpu);
  if (gpu.text_or("kind", "gpu") != "gpu") gpu.fail("kind", "this file describes no GPU", "kind: gpu");

  Gpu result;
  result.name = gpu.text_or("name", "gpu");
  FigureLog log(result.name, field);
  gpu.fill(result);
  result.architecture = read_architecture(gpu["architecture"]);
  log.add(gpu, {"compute_capability", "sms", "boost_clock"});
  result.vector_rate = read_rates(gpu["vector_rate"], log);
  if (const auto rates = gpu.find("tensor_rate")) result.tensor_rate = read_rates(*rates, log);
  log.add(gpu, {"memory", "memory_bandwidth", "memory_latency", "l2_cache", "l2_bandwidth", "shared_memory_per_sm",
                "board_power"});
  result.board_power_watts = gpu["board_power"].parse(parse_watts);
  result.slot = gpu.text_or("slot", "");
  result.nvlink = gpu.text_or("nvlink", "");
  if (const auto processor = gpu.find("processor")) result.processor = read_processor(*processor, log);
  if (!(result.vector_rate[static_cast<std::size_t>(Precision::fp32)].value() > 0.0)) {
    gpu.fail("vector_rate", "no fp32 rate", "fp32: the rate of the CUDA cores; other formats fall back to it");
  }
  result.constants = std::move(log).take();
  return result;
}

}  // namespace foretrain

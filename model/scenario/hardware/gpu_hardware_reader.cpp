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
  if (const auto share = keys.find("share")) {
    processor.share = share->number(Zero::refused);
    if (processor.share > 1.0) share->fail("more than the whole core", "a share above 0, up to 1");
    log.add(*share);
  }
  if (const auto spread = keys.find("spread")) {
    constexpr double most = 0.2;  // of step.device_spread
    processor.spread = spread->number(Zero::allowed);
    if (processor.spread > most) spread->fail("cores that differ so much are of several kinds", "0 to 0.2");
    log.add(*spread);
  }
  processor.dispatch = figure<Seconds>(keys, "dispatch", log);
  processor.product_rate = figure<FlopsPerSecond>(keys, "product_rate", log);
  if (keys.has("packing_rate")) processor.packing_rate = figure<BytesPerSecond>(keys, "packing_rate", log);
  processor.convolution_rate = figure<FlopsPerSecond>(keys, "convolution_rate", log);
  processor.convolution_gradient_rate = figure<FlopsPerSecond>(keys, "convolution_gradient_rate", log);
  processor.reorder_rate = figure<BytesPerSecond>(keys, "reorder_rate", log);
  processor.norm_rate = figure<BytesPerSecond>(keys, "norm_rate", log);
  processor.norm_gradient_rate = figure<BytesPerSecond>(keys, "norm_gradient_rate", log);
  processor.transcendental_rate = figure<BytesPerSecond>(keys, "transcendental_rate", log);
  processor.pooling_rate = figure<BytesPerSecond>(keys, "pooling_rate", log);
  processor.random_rate = figure<BytesPerSecond>(keys, "random_rate", log);
  processor.conversion_rate = figure<BytesPerSecond>(keys, "conversion_rate", log);
  processor.fresh_rate = figure<BytesPerSecond>(keys, "fresh_rate", log);
  processor.transfer_rate = figure<BytesPerSecond>(keys, "transfer_rate", log);
  if (keys.has("message")) processor.message = figure<Seconds>(keys, "message", log);
  if (keys.has("wake")) processor.wake = figure<Seconds>(keys, "wake", log);
  if (keys.has("after_wait")) processor.after_wait = figure<Seconds>(keys, "after_wait", log);
  processor.all_reduce = figure<Seconds>(keys, "all_reduce", log);
  processor.sum_rate = figure<BytesPerSecond>(keys, "sum_rate", log);
  processor.narrow_sum_rate = figure<BytesPerSecond>(keys, "narrow_sum_rate", log);
  processor.process = figure<Bytes>(keys, "process", log);
  return processor;
}

/// A preset may have a preset of its own: `depth` is how many stand before it.
YamlNode resolved(const Field& field, CatalogueSection section, int depth) {
  constexpr int deepest = 8;
  if (field.is_scalar()) {
    if (depth > deepest) field.fail("presets without an end", "a file that needs no other");
    const YamlNode& file = cached_yaml_file(catalogue_file(section, field).string());
    return resolved(Field(file, field.path()), section, depth);
  }
  const YamlEntry* preset = field.node().find("preset");
  if (preset == nullptr) return field.node();
  YamlNode changes = field.node();
  std::erase_if(changes.entries, [](const YamlEntry& entry) { return entry.key == "preset"; });
  return merged(resolved(Field(preset->value, join_path(field.path(), "preset")), section, depth + 1), changes);
}

}  // namespace

YamlNode resolve_preset(const Field& field, CatalogueSection section) { return resolved(field, section, 0); }

Gpu read_gpu(const Field& written) {
  const YamlNode document = resolve_preset(written, CatalogueSection::gpu);
  const Field field(document, written.path());
  const MappingReader gpu = field.mapping(keys::gpu);
  if (gpu.text_or("kind", "gpu") != "gpu") gpu.fail("kind", "this file describes no GPU", "kind: gpu");

  Gpu result;
  result.name = gpu.text_or("name", "gpu");
  FigureLog log(result.name, field);
  const auto noted = [&](std::string_view key) {
    log.add(gpu[key]);
    return gpu[key];
  };
  result.architecture = read_architecture(gpu["architecture"]);
  result.compute_capability = noted("compute_capability").number(Zero::refused);
  result.sms = static_cast<int>(noted("sms").integer({1, 100'000}));
  result.boost_clock = figure<Hertz>(gpu, "boost_clock", log);
  result.vector_rate = read_rates(gpu["vector_rate"], log);
  if (const auto rates = gpu.find("tensor_rate")) result.tensor_rate = read_rates(*rates, log);
  result.memory = figure<Bytes>(gpu, "memory", log);
  result.memory_bandwidth = figure<BytesPerSecond>(gpu, "memory_bandwidth", log);
  result.memory_latency = figure<Seconds>(gpu, "memory_latency", log);
  result.l2_cache = figure<Bytes>(gpu, "l2_cache", log);
  result.l2_bandwidth = figure<BytesPerSecond>(gpu, "l2_bandwidth", log);
  result.shared_memory_per_sm = figure<Bytes>(gpu, "shared_memory_per_sm", log);
  result.board_power_watts = noted("board_power").parse([](const std::string& text) { return parse_watts(text); });
  result.copy_engines = gpu.int_or("copy_engines", result.copy_engines, {1, 64});
  result.slot = gpu.text_or("slot", "");
  result.nvlink = gpu.text_or("nvlink", "");
  result.nvlinks = gpu.int_or("nvlinks", 0, {0, 64});
  result.bridged = gpu.flag_or("bridged", false);
  result.peer_access = gpu.flag_or("peer_access", result.peer_access);
  if (const auto processor = gpu.find("processor")) result.processor = read_processor(*processor, log);
  if (!(result.vector_rate[static_cast<std::size_t>(Precision::fp32)].value() > 0.0)) {
    gpu.fail("vector_rate", "no fp32 rate", "fp32: the rate of the CUDA cores; other formats fall back to it");
  }
  result.constants = std::move(log).take();
  return result;
}

}  // namespace foretrain

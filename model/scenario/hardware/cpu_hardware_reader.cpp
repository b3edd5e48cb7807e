// `cpu:` of a node, and the table of microarchitectures that its memory hierarchy is taken from.
#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "model/base/text.hpp"
#include "model/base/units.hpp"
#include "model/scenario/catalogue.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"

namespace foretrain {

namespace {

/// A name, { preset: NAME, … }, or all keys.
YamlNode resolve_hierarchy(const Field& field) {
  if (!field.is_scalar() && !field.is_mapping())
    field.fail("neither a name nor a mapping", "the name of a microarchitecture");
  return resolve_preset(field, Catalogue::processor);
}

/// A figure that may be stated in units of the core's clock: "5 cycles", "48 B/cycle".
template <typename Q>
Q clocked(const MappingReader& keys, std::string_view key, Hertz clock, FigureLog& log) {
  constexpr bool is_time = std::is_same_v<Q, Seconds>;
  const Field field = keys[key];
  log.add(field);
  const NumberAndUnit parts = field.parse(split_number_and_unit);
  if (parts.unit != (is_time ? "cycles" : "B/cycle")) return field.quantity<Q>();
  field.fail_if(!(parts.number > 0.0 && parts.number <= 1e6), "{0} is no such figure of hardware", "for example 5 {1}",
                field.text(), parts.unit);
  if constexpr (is_time) return parts.number / clock;
  if constexpr (!is_time) return Bytes(parts.number) * clock;
}

CacheLevel read_cache(const Field& field, std::string name, Hertz clock, FigureLog& log) {
  const MappingReader keys = field.mapping(keys::cache);
  CacheLevel level;
  level.name = std::move(name);
  keys.fill(level);
  log.add(keys, {"size"});
  level.latency = clocked<Seconds>(keys, "latency", clock, log);
  level.read = clocked<BytesPerSecond>(keys, "read", clock, log);
  level.write = clocked<BytesPerSecond>(keys, "write", clock, log);
  if (keys.has("shared_read")) level.shared_read = clocked<BytesPerSecond>(keys, "shared_read", clock, log);
  log.add(keys, {"residence"});
  return level;
}

/// Each level is larger and slower than the one before, or the description is wrong.
void require_order(const MappingReader& caches, const MemoryHierarchy& result) {
  const auto fail = [&](const CacheLevel& level, const char* key, std::string got, std::string expected) {
    caches[level.name].at(key).fail(std::move(got), std::move(expected));
  };
  const CacheLevel* inner = nullptr;
  for (const CacheLevel& level : result.caches) {
    if (level.size < result.line * static_cast<double>(level.ways)) {
      fail(level, "size", fmt::format("{} ways of a line each are more than the cache holds", level.ways),
           "a size of at least ways x line");
    }
    if (inner != nullptr && !level.victim && !(level.size > inner->size)) {
      fail(level, "size", fmt::format("{} is no larger than {}", level.name, inner->name), "levels in order");
    }
    if (inner != nullptr && !(level.latency > inner->latency)) {
      fail(level, "latency", fmt::format("{} is no slower than {}", level.name, inner->name), "levels in order");
    }
    inner = &level;
  }
  if (!(result.memory_latency > inner->latency)) {
    fail(*inner, "latency", "the last cache is no faster than memory", "less than memory.latency");
  }
}

void read_caches(const Field& field, Hertz clock, MemoryHierarchy& result, FigureLog& log) {
  const MappingReader caches = field.mapping(keys::caches);
  for (const char* name : {"L1", "L2", "L3"}) {
    const auto level = caches.find(name);
    if (!level) break;
    result.caches.push_back(read_cache(*level, name, clock, log));
  }
  if (result.caches.empty()) caches.fail("L1", "no caches", "L1: { size: 32 KiB, ways: 8, latency: 4 cycles, … }");
  if (caches.has("L3") && result.caches.size() < 3) caches.fail("L3", "an L3 without an L2", "L1, L2 and L3");
  require_order(caches, result);
}

Tlb read_tlb(const Field& field, Hertz clock, FigureLog& log) {
  const MappingReader keys = field.mapping(keys::tlb);
  Tlb tlb;
  keys.fill(tlb);
  tlb.second_latency = clocked<Seconds>(keys, "second_latency", clock, log);
  return tlb;
}

void read_memory(const Field& field, Hertz clock, MemoryHierarchy& result, FigureLog& log) {
  const MappingReader keys = field.mapping(keys::memory);
  result.memory_latency = clocked<Seconds>(keys, "latency", clock, log);
  keys.fill(result);
  log.add(keys, {"efficiency"});
  if (result.memory_efficiency > 1.0) keys.fail("efficiency", "above 1", "the share of the datasheet bandwidth");
  if (result.memory_write_share > 1.0) keys.fail("write_share", "above 1", "the share of the reading bandwidth");
  if (keys.has("remote_latency")) result.remote_latency = clocked<Seconds>(keys, "remote_latency", clock, log);
  if (keys.has("remote_bandwidth"))
    result.remote_bandwidth = clocked<BytesPerSecond>(keys, "remote_bandwidth", clock, log);
}

MemoryHierarchy read_hierarchy(const Field& written, const Cpu& cpu, std::vector<Constant>& constants) {
  const YamlNode document = resolve_hierarchy(written);
  const Field field(document, written.path());
  const MappingReader keys = field.mapping(keys::hierarchy);
  MemoryHierarchy result;
  result.name = written.is_scalar() ? written.text() : "hierarchy";
  FigureLog log(cpu.name, field);
  keys.fill(result);
  if (!keys.has("fetch")) result.fetch = result.line;
  read_memory(keys["memory"], cpu.core_clock, result, log);
  read_caches(keys["caches"], cpu.core_clock, result, log);
  result.tlb = read_tlb(keys["tlb"], cpu.core_clock, log);
  log.add(keys, {"line_fill_buffers", "prefetched_lines"});
  result.vector_bytes = static_cast<int>(keys["vector"].quantity<Bytes>().value());
  keys.fail_if(result.vector_bytes < 8 || Bytes(result.vector_bytes) > result.line, "vector",
               "a vector that is no part of a line", "16 B, 32 B or 64 B");
  constants = std::move(log).take();
  return result;
}

MatrixLibrary read_matrix_library(std::vector<Constant>& constants) {
  const Field field(hardware_table("matrix_library.yaml"), "matrix_library");
  const MappingReader keys = field.mapping(keys::matrix_library);
  FigureLog log("matrix_library", field);
  MatrixLibrary library;
  keys.fill(library);
  log.add(keys, {"kernel_share", "tile_cycles", "call", "join", "small_product", "small_vector"});
  const std::vector<Constant> read = std::move(log).take();
  constants.insert(constants.end(), read.begin(), read.end());
  return library;
}

}  // namespace

std::vector<KnownProcessors> known_processors() {
  std::vector<KnownProcessors> result;
  for (const CatalogueEntry& entry : list_processors()) {
    const MappingReader keys = Field(cached_yaml_file(entry.file.string()), "").mapping(keys::hierarchy);
    KnownProcessors known{entry.name,
                          {},
                          keys["memory"].mapping(keys::memory)["socket_bandwidth"].quantity<BytesPerSecond>(),
                          keys.text_or("slot", "")};
    if (const auto models = keys.find("models")) {
      for (const Field& model : models->list_or_one()) known.processors.push_back(model.text());
    }
    result.push_back(std::move(known));
  }
  return result;
}

Cpu read_cpu(const Field& field, FigureLog& log) {
  const MappingReader cpu = field.mapping(keys::cpu);
  Cpu result;
  result.name = cpu.text_or("name", "cpu");
  cpu.fill(result);
  if (!cpu.has("boost_clock")) result.core_clock = result.clock;
  log.add(cpu, {"cores", "clock", "memory", "memory_bandwidth", "fp32_rate"});
  if (const auto hierarchy = cpu.find("hierarchy")) {
    result.hierarchy = read_hierarchy(*hierarchy, result, result.hierarchy_constants);
    result.matrix_library = read_matrix_library(result.hierarchy_constants);
  }
  return result;
}

}  // namespace foretrain

// `cpu:` of a node, and the table of microarchitectures that its memory hierarchy is taken from.
#include <fmt/format.h>

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
  return resolve_preset(field, CatalogueSection::processor);
}

/// Figures that may be stated in units of the core's clock: "5 cycles", "48 B/cycle".
class ClockedFigures {
 public:
  ClockedFigures(Hertz clock, FigureLog& log) : clock_(clock), log_(&log) {}

  [[nodiscard]] Seconds time(const MappingReader& keys, std::string_view key) const {
    const Field field = keys[key];
    log_->add(field);
    if (const auto cycles = number_of(field, "cycles")) return *cycles / clock_;
    return field.quantity<Seconds>();
  }
  [[nodiscard]] BytesPerSecond bandwidth(const MappingReader& keys, std::string_view key) const {
    const Field field = keys[key];
    log_->add(field);
    if (const auto bytes = number_of(field, "B/cycle")) return Bytes(*bytes) * clock_;
    return field.quantity<BytesPerSecond>();
  }

 private:
  static std::optional<double> number_of(const Field& field, std::string_view unit) {
    const NumberAndUnit parts = field.parse([](const std::string& text) { return split_number_and_unit(text); });
    if (parts.unit != unit) return std::nullopt;
    if (!(parts.number > 0.0 && parts.number <= 1e6)) {
      field.fail(fmt::format("{} is no such figure of hardware", field.text()), fmt::format("for example 5 {}", unit));
    }
    return parts.number;
  }

  Hertz clock_;
  FigureLog* log_;
};

CacheLevel read_cache(const Field& field, std::string name, const ClockedFigures& clocked, FigureLog& log) {
  const MappingReader keys = field.mapping(keys::cache);
  CacheLevel level;
  level.name = std::move(name);
  level.size = figure<Bytes>(keys, "size", log);
  level.ways = static_cast<int>(keys["ways"].integer({1, 1024}));
  level.shared_by = keys.int_or("shared_by", 1, {1, 100'000});
  level.latency = clocked.time(keys, "latency");
  level.read = clocked.bandwidth(keys, "read");
  level.write = clocked.bandwidth(keys, "write");
  if (keys.has("shared_read")) level.shared_read = clocked.bandwidth(keys, "shared_read");
  level.hashed = keys.flag_or("hashed", false);
  level.victim = keys.flag_or("victim", false);
  if (keys.has("residence")) level.residence = figure<Seconds>(keys, "residence", log);
  return level;
}

/// Each level is larger and slower than the one before, or the description is wrong.
void require_order(const MappingReader& caches, const MemoryHierarchy& result) {
  const auto fail = [&](const CacheLevel& level, const char* key, std::string got, std::string expected) {
    const Field cache = caches[level.name];
    Field(cache.node().find(key)->value, join_path(cache.path(), key)).fail(std::move(got), std::move(expected));
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

void read_caches(const Field& field, const ClockedFigures& clocked, MemoryHierarchy& result, FigureLog& log) {
  const MappingReader caches = field.mapping(keys::caches);
  for (const char* name : {"L1", "L2", "L3"}) {
    const auto level = caches.find(name);
    if (!level) break;
    result.caches.push_back(read_cache(*level, name, clocked, log));
  }
  if (result.caches.empty()) caches.fail("L1", "no caches", "L1: { size: 32 KiB, ways: 8, latency: 4 cycles, … }");
  if (caches.has("L3") && result.caches.size() < 3) caches.fail("L3", "an L3 without an L2", "L1, L2 and L3");
  require_order(caches, result);
}

Tlb read_tlb(const Field& field, const ClockedFigures& clocked) {
  const MappingReader keys = field.mapping(keys::tlb);
  constexpr IntegerRange range{1, 1'000'000};
  Tlb tlb;
  tlb.entries = static_cast<int>(keys["entries"].integer(range));
  tlb.huge_entries = static_cast<int>(keys["huge_entries"].integer(range));
  tlb.second_entries = static_cast<int>(keys["second_entries"].integer(range));
  tlb.second_latency = clocked.time(keys, "second_latency");
  tlb.walkers = keys.int_or("walkers", 1, {1, 64});
  return tlb;
}

void read_memory(const Field& field, const ClockedFigures& clocked, MemoryHierarchy& result, FigureLog& log) {
  const MappingReader keys = field.mapping(keys::memory);
  result.memory_latency = clocked.time(keys, "latency");
  log.add(keys["efficiency"]);
  result.memory_efficiency = keys["efficiency"].number(Zero::refused);
  if (result.memory_efficiency > 1.0) keys.fail("efficiency", "above 1", "the share of the datasheet bandwidth");
  result.memory_write_share = keys.number_or("write_share", result.memory_write_share, Zero::refused);
  if (result.memory_write_share > 1.0) keys.fail("write_share", "above 1", "the share of the reading bandwidth");
  if (keys.has("remote_latency")) result.remote_latency = clocked.time(keys, "remote_latency");
  if (keys.has("remote_bandwidth")) result.remote_bandwidth = clocked.bandwidth(keys, "remote_bandwidth");
}

MemoryHierarchy read_hierarchy(const Field& written, const Cpu& cpu, std::vector<Constant>& constants) {
  const YamlNode document = resolve_hierarchy(written);
  const Field field(document, written.path());
  const MappingReader keys = field.mapping(keys::hierarchy);
  MemoryHierarchy result;
  result.name = written.is_scalar() ? written.text() : "hierarchy";
  FigureLog log(cpu.name, field);
  const ClockedFigures clocked(cpu.core_clock, log);
  result.line = keys.quantity_or<Bytes>("line", result.line);
  result.fetch = keys.quantity_or<Bytes>("fetch", result.line);
  result.small_page = keys.quantity_or<Bytes>("small_page", result.small_page);
  result.huge_page = keys.quantity_or<Bytes>("huge_page", result.huge_page);
  read_memory(keys["memory"], clocked, result, log);
  read_caches(keys["caches"], clocked, result, log);
  result.tlb = read_tlb(keys["tlb"], clocked);
  const auto counted = [&](std::string_view key) {
    log.add(keys[key]);
    return static_cast<int>(keys[key].integer({1, 10'000}));
  };
  result.line_fill_buffers = counted("line_fill_buffers");
  result.prefetched_lines = counted("prefetched_lines");
  result.prefetch_stride = keys.quantity_or<Bytes>("prefetch_stride", Bytes(0.0), Zero::allowed);
  result.loads_per_cycle = keys["loads_per_cycle"].number(Zero::refused);
  result.vector_bytes = static_cast<int>(keys["vector"].quantity<Bytes>().value());
  result.virtualised = keys.flag_or("virtualised", false);
  if (result.vector_bytes < 8 || Bytes(result.vector_bytes) > result.line) {
    keys.fail("vector", "a vector that is no part of a line", "16 B, 32 B or 64 B");
  }
  constants = std::move(log).take();
  return result;
}

MatrixLibrary read_matrix_library(std::vector<Constant>& constants) {
  const Field field(hardware_table("matrix_library.yaml"), "matrix_library");
  const MappingReader keys = field.mapping(keys::matrix_library);
  FigureLog log("matrix_library", field);
  const auto number = [&](std::string_view key) {
    log.add(keys[key]);
    return keys[key].number(Zero::refused);
  };
  MatrixLibrary library{number("kernel_share"),
                        number("tile_cycles"),
                        figure<Seconds>(keys, "call", log),
                        figure<Seconds>(keys, "join", log),
                        number("small_product"),
                        figure<Bytes>(keys, "small_vector", log)};
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
  result.sockets = cpu.int_or("sockets", 1, {1, 64});
  log.add(cpu["cores"]);
  result.cores = static_cast<int>(cpu["cores"].integer({1, 100'000}));
  result.clock = figure<Hertz>(cpu, "clock", log);
  result.core_clock = cpu.has("boost_clock") ? cpu["boost_clock"].quantity<Hertz>() : result.clock;
  result.memory = figure<Bytes>(cpu, "memory", log);
  result.memory_bandwidth = figure<BytesPerSecond>(cpu, "memory_bandwidth", log);
  result.fp32_rate = figure<FlopsPerSecond>(cpu, "fp32_rate", log);
  if (const auto hierarchy = cpu.find("hierarchy")) {
    result.hierarchy = read_hierarchy(*hierarchy, result, result.hierarchy_constants);
    result.matrix_library = read_matrix_library(result.hierarchy_constants);
  }
  return result;
}

}  // namespace foretrain

// Processors with their memory hierarchies, GPUs and storage.

#include "model/scenario/hardware/hardware_reader.hpp"

namespace foretrain {

namespace {

/// A figure that may be stated in units of the core's clock: "5 cycles", "48 B/cycle".
template <typename Q>
Q clocked(const MappingReader& keys, std::string_view key, Hertz clock, FigureLog& log) {
  constexpr bool is_time = std::is_same_v<Q, Seconds>;
  const Field field = keys[key];
  log.add(field);
  const NumberAndUnit parts = field.parse(split_number_and_unit);
  if (parts.unit != (is_time ? "cycles" : "B/cycle")) return field.as<Q>({});
  field.fail_if(!(parts.number > 0.0 && parts.number <= 1e6), "{0} is no plausible value", "for example 5 {1}",
                field.text(), parts.unit);
  if constexpr (is_time) return parts.number / clock;
  if constexpr (!is_time) return Bytes(parts.number) * clock;
}

CacheLevel read_cache(const Field& field, std::string name, Hertz clock, FigureLog& log) {
  const MappingReader keys = field.mapping();
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
  const auto figure = [&](const CacheLevel& level, const char* key) { return caches[level.name].at(key); };
  const CacheLevel* inner = nullptr;
  for (const CacheLevel& level : result.caches) {
    figure(level, "size")
        .fail_if(level.size < result.line * static_cast<double>(level.ways),
                 "{} ways of a line each are more than the cache holds", "a size of at least ways x line", level.ways);
    if (const CacheLevel* before = std::exchange(inner, &level)) {
      figure(level, "size")
          .fail_if(!level.victim && !(level.size > before->size), "{} is no larger than {}", "levels in order",
                   level.name, before->name);
      figure(level, "latency")
          .fail_if(!(level.latency > before->latency), "{} is no slower than {}", "levels in order", level.name,
                   before->name);
    }
  }
  figure(*inner, "latency")
      .fail_if(!(result.memory_latency > inner->latency), "the last cache is no faster than memory",
               "less than memory.latency");
}

void read_caches(const Field& field, Hertz clock, MemoryHierarchy& result, FigureLog& log) {
  const MappingReader caches = field.mapping();
  for (const char* name : {"L1", "L2", "L3"}) {
    if (!caches.has(name)) break;
    result.caches.push_back(read_cache(caches[name], name, clock, log));
  }
  if (result.caches.empty()) caches.fail("L1", "no caches", "L1: { size: 32 KiB, ways: 8, latency: 4 cycles, … }");
  if (caches.has("L3") && result.caches.size() < 3) caches.fail("L3", "an L3 without an L2", "L1, L2 and L3");
  require_order(caches, result);
}

void read_memory(const Field& field, Hertz clock, MemoryHierarchy& result, FigureLog& log) {
  const MappingReader keys = field.mapping();
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
  written.fail_if(!written.is_scalar() && !written.is_mapping(), "neither a name nor a mapping",
                  "the name of a microarchitecture");
  const Field field = resolve_preset(written, Catalogue::processor);
  const MappingReader keys = field.mapping(keys::hierarchy);
  MemoryHierarchy result;
  result.name = written.is_scalar() ? written.text() : "hierarchy";
  FigureLog log(cpu.name, field);
  keys.fill(result);
  if (!keys.has("fetch")) result.fetch = result.line;
  read_memory(keys["memory"], cpu.core_clock, result, log);
  read_caches(keys["caches"], cpu.core_clock, result, log);
  const MappingReader tlb = keys["tlb"].mapping();
  tlb.fill(result.tlb);
  result.tlb.second_latency = clocked<Seconds>(tlb, "second_latency", cpu.core_clock, log);
  log.add(keys, {"line_fill_buffers", "prefetched_lines"});
  result.vector_bytes = static_cast<int>(keys["vector"].as<Bytes>().value());
  keys.fail_if(result.vector_bytes < 8 || Bytes(result.vector_bytes) > result.line, "vector",
               "not a divisor of the cache line", "16 B, 32 B or 64 B");
  constants = std::move(log).take();
  return result;
}

MatrixLibrary read_matrix_library(std::vector<Constant>& constants) {
  const Field field(hardware_table("matrix_library.yaml"), "matrix_library");
  const MappingReader keys = field.mapping(keys::matrix_library);
  FigureLog log("matrix_library", field);
  auto library = keys.filled<MatrixLibrary>();
  log.add(keys, {"kernel_share", "tile_cycles", "call", "join", "small_product", "small_vector"});
  for (const Constant& figure : std::move(log).take()) constants.push_back(figure);
  return library;
}

/// `{ fp32: 19.5 TFLOP/s, … }`; formats that are not listed have no unit of their own.
std::array<FlopsPerSecond, precision_count> read_rates(const Field& field, FigureLog& log) {
  const MappingReader rates = field.mapping();
  std::array<FlopsPerSecond, precision_count> result{};
  for (std::size_t p = 0; p < result.size(); ++p) {
    const std::string_view word = names_of<Precision>[p];
    if (rates.has(word)) result[p] = figure<FlopsPerSecond>(rates, word, log);
  }
  return result;
}

/// `processor:` of a device that is one. All rates are those of one core with nothing else to do.
Processor read_processor(const Field& field, FigureLog& log) {
  const MappingReader keys = field.mapping();
  auto processor = keys.filled<Processor>();
  if (processor.share > 1.0) keys.fail("share", "more than the whole core", "a share above 0, up to 1");
  constexpr double most_spread = 0.2;  // of step.device_spread
  keys.fail_if(processor.spread > most_spread, "spread", "cores that differ so much are of several kinds", "0 to 0.2");
  for (const keys::Key* key : keys.keys()) log.add(keys, {key->name});
  return processor;
}

/// "10000 rpm", or the time of one revolution.
Seconds read_rotation(const Field& field) {
  std::string text = field.text();
  if (!text.ends_with("rpm")) return field.as<Seconds>();
  text.erase(text.find_last_not_of("rpm ") + 1);
  const double per_minute = field.parse([&](const std::string&) { return parse_number(text); });
  if (!(per_minute > 0.0)) field.fail("no rotation", "10000 rpm, or the time of a revolution as 6 ms");
  return Seconds(60.0 / per_minute);
}

void check_disk(const MappingReader& keys, const Storage& disk) {
  keys.fail_if(disk.track_to_track > std::min(disk.seek, disk.write_seek), "track_to_track",
               "a seek to the next track that takes longer than the average one", "less than seek and write_seek");
  keys.fail_if(disk.inner_bandwidth > disk.read_bandwidth, "inner_bandwidth", "an inner zone faster than the outer one",
               "at most read_bandwidth");
  keys.refuse({"random_read_iops", "random_write_iops"}, "a disk's requests per second follow from rotation and seek",
              "leave the key out");
}

/// Reads the kind of storage; it gives the values that are not stated.
void read_kind(const MappingReader& keys, Storage& storage, FigureLog& log, const std::optional<Source>& source) {
  const auto usual = [&](std::string_view key, auto& value, auto other) {
    if (!keys.has(key)) value = other;
  };
  const auto need = [&](std::string_view key) { static_cast<void>(keys[key]); };
  usual("write_bandwidth", storage.write_bandwidth, storage.read_bandwidth);
  log.add(keys, {"read_bandwidth", "write_bandwidth"}, source);
  if (storage.kind == StorageKind::disk) {
    storage.revolution = read_rotation(keys["rotation"]);
    need("seek");
    usual("write_seek", storage.write_seek, storage.seek);
    usual("inner_bandwidth", storage.inner_bandwidth, storage.read_bandwidth);
    usual("queue_depth", storage.queue_depth, 32);
    log.add(keys, {"read_latency", "seek", "write_seek", "track_to_track", "inner_bandwidth"}, source);
    check_disk(keys, storage);
  } else {
    need("read_latency");
    need("random_read_iops");
    usual("random_write_iops", storage.random_write_iops, storage.random_read_iops);
    log.add(keys, {"read_latency", "random_read_iops", "random_write_iops"}, source);
  }
  usual("write_latency", storage.write_latency, storage.read_latency);
  log.add(keys, {"write_latency"}, source);
  if (storage.kind == StorageKind::network) {
    need("round_trip");
    log.add(keys, {"round_trip", "stream_bandwidth", "link_bandwidth"}, source);
  }
}

}  // namespace

std::vector<KnownProcessors> known_processors() {
  std::vector<KnownProcessors> result;
  for (const CatalogueEntry& entry : list_catalogue(Catalogue::processor)) {
    const MappingReader keys = Field(cached_yaml_file(entry.file.string()), "").mapping(keys::hierarchy);
    const Field bandwidth = keys["memory"].mapping()["socket_bandwidth"];
    result.push_back({entry.name, {}, bandwidth.as<BytesPerSecond>(), keys.value_or<std::string>("slot", "")});
    for (const Field& model : keys.list("models")) result.back().processors.push_back(model.text());
  }
  return result;
}

Cpu read_cpu(const Field& field, FigureLog& log) {
  const MappingReader cpu = field.mapping(keys::cpu);
  Cpu result;
  result.name = "cpu";
  cpu.fill(result);
  if (!cpu.has("boost_clock")) result.core_clock = result.clock;
  log.add(cpu, {"cores", "clock", "memory", "memory_bandwidth", "fp32_rate"});
  if (const auto hierarchy = cpu.find("hierarchy")) {
    result.hierarchy = read_hierarchy(*hierarchy, result, result.hierarchy_constants);
    result.matrix_library = read_matrix_library(result.hierarchy_constants);
  }
  return result;
}

Gpu read_gpu(const Field& written) {
  const Field field = resolve_preset(written, Catalogue::gpu);
  const MappingReader gpu = field.mapping(keys::gpu);
  if (gpu.value_or<std::string>("kind", "gpu") != "gpu") gpu.fail("kind", "this file describes no GPU", "kind: gpu");

  Gpu result;
  result.name = "gpu";
  gpu.fill(result);
  FigureLog log(result.name, field);
  log.add(gpu, {"compute_capability", "sms", "boost_clock"});
  result.vector_rate = read_rates(gpu["vector_rate"], log);
  if (const auto rates = gpu.find("tensor_rate")) result.tensor_rate = read_rates(*rates, log);
  log.add(gpu, {"memory", "memory_bandwidth", "memory_latency", "l2_cache", "l2_bandwidth", "shared_memory_per_sm",
                "board_power"});
  result.board_power_watts = gpu["board_power"].parse(parse_watts);
  if (const auto processor = gpu.find("processor")) result.processor = read_processor(*processor, log);
  gpu.fail_if(!(result.vector_rate[static_cast<std::size_t>(Precision::fp32)].value() > 0.0), "vector_rate",
              "no fp32 rate", "fp32: the rate of the CUDA cores; other formats fall back to it");
  result.constants = std::move(log).take();
  return result;
}

Storage read_storage(const Field& field, FigureLog& log) {
  const Field table = hardware_table("storage.yaml", keys::storage_file)["storage"];
  const MappingReader keys = entry_or_changes(table, field, "storage").mapping(keys::storage);
  auto storage = keys.filled<Storage>();
  storage.name = keys.value_or<std::string>("name", field.is_scalar() ? field.text() : "storage");
  const auto source = keys.find("source");
  read_kind(keys, storage, log, source ? std::optional(read_source(*source)) : std::nullopt);
  return storage;
}

Storage read_storage(const Field& field) {
  FigureLog log("storage", field.path());
  Storage storage = read_storage(field, log);
  storage.constants = std::move(log).take();
  return storage;
}

}  // namespace foretrain

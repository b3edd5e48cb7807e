// Work of hosts: walks over memory, GEMMs on cores; loaders, requests to storage, checkpoints.

#include "model/base/format.hpp"
#include "model/scenario/hardware/hardware_reader.hpp"
#include "model/scenario/workload/workload_reader.hpp"

namespace foretrain {

namespace {

void check_threads(const MappingReader& keys, int threads, const Cpu& cpu) {
  keys.fail_if(threads > cpu.cores, "threads", "{0} threads, but {1} has {2} cores", "at most {2}", threads, cpu.name,
               cpu.cores);
}

HostWorkload read_memory_walk(const Field& field, const Cpu& cpu) {
  const MappingReader keys = field.mapping(keys::memory_walk);
  const MemoryHierarchy& memory = *cpu.hierarchy;
  auto walk = keys.filled<MemoryWalk>();
  check_threads(keys, walk.threads, cpu);
  keys.fail_if(walk.working_set > cpu.memory, "working_set", "{} has {}", "a working set that fits", cpu.name,
               format_binary_bytes(cpu.memory));
  keys.fail_if(walk.working_set < memory.line * static_cast<double>(walk.threads), "working_set",
               "less than a line for each thread", "at least 64 B a thread");
  keys.fail_if(keys.has("burst") && walk.burst < memory.line, "burst", "bursts are whole lines", "at least 64 B");
  keys.fail_if(walk.pattern == WalkPattern::pointer_chase && walk.access != WalkAccess::read, "access",
               "a pointer chase reads", "access: read");
  if (walk.element > memory.line) keys.fail("element", "larger than a line", "at most 64 B");
  keys.fail_if(walk.pattern == WalkPattern::strided && walk.stride > walk.working_set / walk.threads, "stride",
               "longer than a thread's part of the working set", "a shorter stride");
  keys.fail_if(walk.remote && (cpu.sockets < 2 || !(memory.remote_latency.value() > 0.0)), "memory",
               "{} describes no memory of another socket", "memory: local", cpu.name);
  return {fmt::format("{} over {}", name(walk.pattern), format_binary_bytes(walk.working_set)), walk, 1};
}

HostWorkload read_cpu_matmul(const Field& field, const Cpu& cpu) {
  const MappingReader keys = field.mapping(keys::cpu_matmul);
  auto work = keys.filled<CpuMatmul>();
  if (!keys.has("threads")) work.threads = cpu.cores;
  check_threads(keys, work.threads, cpu);
  return {fmt::format("matmul {}x{}x{} on {}", work.m, work.n, work.k, cpu.name), work, 1};
}

/// Checks across several keys.
void check_loader(const DataLoader& loader, const MappingReader& keys, const Storage& usual) {
  const std::initializer_list<std::string_view> stages = {"read", "decode", "preprocess", "augment", "collate"};
  const bool parts = std::ranges::any_of(stages, [&](std::string_view key) { return keys.has(key); });
  if (keys.has("per_sample")) {
    constexpr std::string_view right = "the parts, or per_sample alone";
    keys.refuse(stages, "a part of per_sample, which is stated too", right);
    keys.refuse({"dataset"}, "per_sample contains reading", right);
  } else if (!parts && !loader.dataset && !keys.has("transfer")) {
    keys.fail("per_sample", "the cost of loading is missing",
              "per_sample, or read, decode, preprocess, augment, collate, transfer, or a dataset");
  }
  if (loader.dataset) {
    keys.refuse({"read"}, "the dataset's storage determines the read time", "read, or a dataset");
  }
  keys.fail_if(loader.dataset && !loader.storage && !usual.exists(), "dataset", "the node has no storage",
               "storage: a name of scenarios/hardware/storage.yaml, or a mapping");
  keys.fail_if(loader.keeps_decoded && !(loader.decoded > Bytes(0.0)), "keep_decoded",
               "the size of a decoded sample is missing", "decoded, for example decoded: 602 KB");
  keys.fail_if(loader.decodes_on_device != keys.has("device_decode"),
               loader.decodes_on_device ? "decode_on" : "device_decode",
               loader.decodes_on_device ? "the device's time is missing" : "decoding is done by the workers",
               loader.decodes_on_device ? "device_decode, its time for a sample (or batch)" : "decode_on: gpu");
}

}  // namespace

HostWorkload read_gpu_chase(const Field& field, const Gpu& gpu) {
  const MappingReader keys = field.mapping(keys::gpu_chase);
  const GpuChase walk{keys["working_set"].as<Bytes>()};
  keys.fail_if(keys.value_or("pattern", WalkPattern::pointer_chase) != WalkPattern::pointer_chase, "pattern",
               "a GPU's memory is only followed pointer by pointer", "pattern: pointer_chase, or on: cpu");
  keys.fail_if(walk.working_set <= gpu.l2_cache, "working_set", "the L2 of {} holds {}",
               "more than that, to measure memory", gpu.name, format_binary_bytes(gpu.l2_cache));
  keys.fail_if(walk.working_set > gpu.memory, "working_set", "{} has {}", "one that fits", gpu.name,
               format_binary_bytes(gpu.memory));
  return {fmt::format("pointer chase over {} of {}", format_binary_bytes(walk.working_set), gpu.name), walk, 1};
}

HostWorkload read_host_operator(const Field& kind, const Field& field, const Cpu& cpu) {
  const bool walks = kind.text() == "memory_walk";
  kind.fail_if(!walks && kind.text() != "matmul", "no operator {} on a CPU", "memory_walk or matmul", kind.text());
  kind.fail_if(!cpu.hierarchy, "the memory hierarchy of {} is not described",
               "a node whose cpu names its hierarchy (scenarios/hardware/processors)", cpu.name);
  return walks ? read_memory_walk(field, cpu) : read_cpu_matmul(field, cpu);
}

DataLoader read_loader(const Field& field, const Storage& usual) {
  const MappingReader keys = field.mapping(keys::loader);
  auto loader = keys.filled<DataLoader>();
  keys.fill(loader.stages);
  if (const auto dataset = keys.find("dataset")) dataset->mapping().fill(loader.dataset.emplace());
  if (const auto storage = keys.find("storage")) loader.storage = read_storage(*storage);
  check_loader(loader, keys, usual);
  return loader;
}

LoaderWorkload read_loader_workload(const Field& field, const Storage& usual) {
  YamlNode loader = field.node();
  loader.erase("batch");
  LoaderWorkload workload{read_loader({std::move(loader), field.path()}, usual)};
  const Field batch = field.at("batch", "the samples of one batch");
  workload.batch = batch.as<double>(keys::key_of(keys::loader_alone, "batch"));
  return workload;
}

StorageWorkload read_storage_workload(const Field& field, bool write, const Storage& usual) {
  const MappingReader keys = field.mapping(keys::disk_requests);
  StorageWorkload workload;
  workload.storage = usual;
  if (const auto storage = keys.find("storage")) workload.storage = read_storage(*storage);
  field.fail_if(!workload.storage.exists(), "the node has no storage",
                "storage: a name of scenarios/hardware/storage.yaml, or a mapping");
  DiskPattern& pattern = workload.pattern;
  pattern.write = write;
  pattern.direct = true;
  keys.fill(pattern);
  if (pattern.zone > 1.0) keys.fail("zone", fmt::format("{} of the way in", pattern.zone), "from 0 (outermost) to 1");
  workload.size = keys.value_or("size", pattern.block);
  return workload;
}

Checkpoint read_checkpoint(const Field& field, const Storage& of_node) {
  const MappingReader keys = field.mapping();
  Checkpoint checkpoint;
  const Field every = keys["every"];
  checkpoint.best_interval = every.is_scalar() && every.text() == "auto";
  if (!checkpoint.best_interval) checkpoint.every = every.as<int>();
  keys.fill(checkpoint);
  if (checkpoint.mode == Checkpoint::Mode::in_memory) return checkpoint;
  const auto storage = keys.find("storage");
  if (!storage) {
    // A machine's own disks fail with it: what nobody states has to outlive a machine.
    checkpoint.storage = read_storage({yaml_scalar("object-store", field.where()), join_path(field.path(), "storage")});
  } else if (storage->is_scalar() && storage->text() == "node") {
    storage->fail_if(!of_node.exists(), "the node has no storage", "a name of scenarios/hardware/storage.yaml");
    checkpoint.storage = of_node;
  } else {
    checkpoint.storage = read_storage(*storage);
  }
  return checkpoint;
}

}  // namespace foretrain

// `workload.operator` with `on: cpu`: walks over memory, and GEMMs on the processor's cores.
#include <fmt/format.h>

#include "model/base/format.hpp"
#include "model/base/text.hpp"
#include "model/base/words.hpp"
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
  MemoryWalk walk;
  keys.fill(walk);
  check_threads(keys, walk.threads, cpu);
  if (walk.working_set > cpu.memory) {
    keys.fail("working_set", fmt::format("{} has {}", cpu.name, format_binary_bytes(cpu.memory)),
              "a working set that fits");
  }
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
  CpuMatmul work;
  keys.fill(work);
  if (!keys.has("threads")) work.threads = cpu.cores;
  check_threads(keys, work.threads, cpu);
  return {fmt::format("matmul {}x{}x{} on {}", work.m, work.n, work.k, cpu.name), work, 1};
}

}  // namespace

HostWorkload read_gpu_chase(const Field& field, const Gpu& gpu) {
  const MappingReader keys = field.mapping(keys::gpu_chase);
  const GpuChase walk{keys["working_set"].quantity<Bytes>()};
  keys.fail_if(keys.choice_or("pattern", WalkPattern::pointer_chase) != WalkPattern::pointer_chase, "pattern",
               "a GPU's memory is only followed pointer by pointer", "pattern: pointer_chase, or on: cpu");
  if (walk.working_set <= gpu.l2_cache) {
    keys.fail("working_set", fmt::format("the L2 of {} holds {}", gpu.name, format_binary_bytes(gpu.l2_cache)),
              "more than that: memory is what is asked about");
  }
  if (walk.working_set > gpu.memory) {
    keys.fail("working_set", fmt::format("{} has {}", gpu.name, format_binary_bytes(gpu.memory)), "one that fits");
  }
  return {fmt::format("pointer chase over {} of {}", format_binary_bytes(walk.working_set), gpu.name), walk, 1};
}

HostWorkload read_host_operator(const Field& kind, const Field& field, const Cpu& cpu) {
  const bool walks = kind.text() == "memory_walk";
  if (!walks && kind.text() != "matmul") {
    kind.fail(fmt::format("no operator {} on a CPU", kind.text()), "memory_walk or matmul");
  }
  kind.fail_if(!cpu.hierarchy, "the memory hierarchy of {} is not described",
               "a node whose cpu names its hierarchy (scenarios/hardware/processors)", cpu.name);
  return walks ? read_memory_walk(field, cpu) : read_cpu_matmul(field, cpu);
}

}  // namespace foretrain

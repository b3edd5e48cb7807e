// Bad walks over memory, bad products on a processor, and bad descriptions of processors.
#include "tests/catch.hpp"
#include "tests/scenario/bad_input.hpp"

using namespace foretrain;

namespace {

struct Row {
  std::string text;  ///< of the operator, marked
  std::string_view key, wrong, right;
};

std::string scenario(const std::string& op, const std::string& node = "p2.8xlarge") {
  return "cluster: { node: " + node + " }\nworkload:\n  operator: " + op + "\n";
}

}  // namespace

TEST_CASE("Bad operators on a processor") {
  const std::vector<Row> rows = {
      {"^{ kind: memory_walk, on: cpu }", "workload.operator.working_set", "missing", ""},
      {"{ kind: ^attention, on: cpu }", "workload.operator.kind", "no operator attention on a CPU", "memory_walk"},
      {"{ kind: memory_walk, working_set: ^1 TiB }", "workload.operator.working_set", "has 488 GiB", "fits"},
      {"{ kind: memory_walk, working_set: ^32 B }", "workload.operator.working_set", "less than a line", "64 B"},
      {"{ kind: memory_walk, working_set: ^960 B, threads: 16 }", "workload.operator.working_set", "less than a line",
       "64 B a thread"},
      {"{ kind: memory_walk, working_set: 1 MiB, threads: ^17 }", "workload.operator.threads", "17 threads",
       "at most 16"},
      {"{ kind: memory_walk, working_set: 1 MiB, stride: ^4 KiB }", "workload.operator.stride", "only a strided walk",
       "pattern: strided"},
      {"{ kind: memory_walk, working_set: 1 MiB, pattern: strided, stride: ^2 MiB }", "workload.operator.stride",
       "longer than", "shorter"},
      {"{ kind: memory_walk, working_set: 1 MiB, burst: ^4 KiB }", "workload.operator.burst", "whole lines at random",
       "pattern: random"},
      {"{ kind: memory_walk, working_set: 1 MiB, pattern: random, direction: ^backward }",
       "workload.operator.direction", "no direction", "sequential"},
      {"{ kind: memory_walk, working_set: 1 MiB, pattern: pointer_chase, access: ^write }", "workload.operator.access",
       "a pointer chase reads", "read"},
      {"{ kind: memory_walk, working_set: 1 MiB, element: ^128 B }", "workload.operator.element", "larger than a line",
       "64 B"},
      {"{ kind: memory_walk, working_set: 1 MiB, memory: ^remote }", "workload.operator.memory", "no memory of another",
       "local"},
      {"{ kind: memory_walk, on: gpu, working_set: ^1 MiB }", "workload.operator.working_set", "the L2 of",
       "more than that"},
      {"{ kind: memory_walk, on: gpu, working_set: ^1 TiB }", "workload.operator.working_set", "has", "fits"},
      {"{ kind: memory_walk, on: gpu, working_set: 1 GiB, pattern: ^random }", "workload.operator.pattern",
       "only followed", "pointer_chase"},
      {"{ kind: matmul, on: cpu, m: 8, n: 8, k: ^0 }", "workload.operator.k", "out of range", "from 1"},
      {"{ kind: matmul, on: cpu, m: 8, n: 8, k: 8, ^batch: 2 }", "workload.operator.batch", "unknown key", ""}};
  for (const Row& row : rows) check_complaint(scenario(row.text), row.key, row.wrong, row.right);
}

TEST_CASE("Bad descriptions of a processor's memory") {
  const auto with = [](const std::string& hierarchy) {
    return scenario("{ kind: memory_walk, working_set: 1 MiB }",
                    "{ preset: p2.8xlarge, cpu: { hierarchy: " + hierarchy + " } }");
  };
  const std::vector<Row> rows = {
      {"^broadwel-ep", "cluster.node.cpu.hierarchy", "unknown microarchitecture", "did you mean broadwell-ep?"},
      {"{ preset: ^pentium }", "cluster.node.cpu.hierarchy.preset", "unknown microarchitecture", "zen-2-epyc"},
      {"{ preset: broadwell-ep, caches: { L2: { size: ^16 KiB } } }", "cluster.node.cpu.hierarchy.caches.L2.size",
       "no larger than L1", "in order"},
      {"{ preset: broadwell-ep, caches: { L3: { latency: ^3 cycles } } }",
       "cluster.node.cpu.hierarchy.caches.L3.latency", "no slower than L2", "in order"},
      {"{ preset: broadwell-ep, caches: { L1: { latency: ^0 cycles } } }",
       "cluster.node.cpu.hierarchy.caches.L1.latency", "no such figure", "5 cycles"},
      {"{ preset: broadwell-ep, caches: { L3: { residence: ^0 ms } } }",
       "cluster.node.cpu.hierarchy.caches.L3.residence", "", ""},
      {"{ preset: broadwell-ep, memory: { write_share: ^1.01 } }", "cluster.node.cpu.hierarchy.memory.write_share",
       "above 1", "the share of the reading bandwidth"},
      {"{ preset: broadwell-ep, memory: { efficiency: ^1.5 } }", "cluster.node.cpu.hierarchy.memory.efficiency",
       "above 1", "share"},
      {"{ preset: broadwell-ep, line_fill_buffers: ^0 }", "cluster.node.cpu.hierarchy.line_fill_buffers",
       "out of range", "from 1"},
      {"{ preset: broadwell-ep, vector: ^128 B }", "cluster.node.cpu.hierarchy.vector", "no part of a line", "64 B"}};
  for (const Row& row : rows) check_complaint(with(row.text), row.key, row.wrong, row.right);
}

TEST_CASE("A processor whose memory is not described is refused by name") {
  check_complaint(scenario("{ kind: ^memory_walk, on: cpu, working_set: 1 MiB }", "host-veth"),
                  "workload.operator.kind", "is not described", "hardware/processors");
  check_complaint(
      scenario("{ kind: memory_walk, on: cpu, working_set: 1 MiB }") + "background: ^[ { from: gpu0, to: gpu1 } ]\n",
      "background", "an operator meets nobody", "train, collective or tasks");
}

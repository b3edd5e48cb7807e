// `workload:` of a scenario: a training, a collective, an operator, a loader, tasks. Out: the variant of scenario.hpp,
// defaults resolved; what hangs on the plan or the cluster is left to plan/ and load/.
#pragma once

#include "model/scenario/scenario.hpp"
#include "model/scenario/yaml_reader.hpp"

namespace foretrain {

/// What a workload says, and what it says about synchronisation (a collective names its algorithm itself).
struct ReadWorkload {
  Workload workload;
  bool states_global_batch = false;
  std::optional<double> global_batch_per_gpu;  ///< instead of it
  std::optional<SyncAlgorithm> algorithm;
  std::vector<int> levels;
  std::optional<int> servers;
  std::optional<ServerPlacement> placement;
};

/// How kernels are cut where neither the scenario nor a trainer says it.
inline KernelSet usual_kernels(bool on_processors) { return on_processors ? KernelSet::plain : KernelSet::fused; }

/// Exactly one of train, collective, operator and tasks. `cluster` gives defaults and limits (ranks, GPU numbers).
ReadWorkload read_workload(const Field& field, const Cluster& cluster);

/// Group sizes of a hierarchical algorithm from the inside out: `[4, 2]`, or one number.
std::vector<int> read_levels(const Field& field);

/// What is done and how often: { kind: matmul, m: 4096, …, repeat: 50 }. The work's name may be a key as well:
/// { matmul: { m: 4096, … }, repeat: 50 }.
struct StatedWork {
  YamlNode kind, keys;  ///< its name, and what else is said of it
  std::string path;
  int repeat = 1;

  [[nodiscard]] Field name() const { return {kind, join_path(path, "kind")}; }
  [[nodiscard]] Field shape() const { return {keys, path}; }
};
StatedWork read_stated_work(const Field& field);

/// The operator that the work names (operator_kinds()), which the GPU must run.
Operator read_operator(const StatedWork& work, const Gpu& gpu);
const std::vector<std::string>& operator_kinds();

/// The same on the processor, for `on: cpu`; complains at the kind where the CPU has none such.
HostWorkload read_host_operator(const Field& kind, const Field& field, const Cpu& cpu);
const std::vector<std::string>& host_operator_kinds();
/// `kind: memory_walk` with `on: gpu`: a pointer chase over its memory.
HostWorkload read_gpu_chase(const Field& field, const Gpu& gpu);

/// `workload.tasks`: see tasks_workload_reader.cpp for the grammar.
TasksWorkload read_tasks(const Field& field, const Cluster& cluster);

}  // namespace foretrain

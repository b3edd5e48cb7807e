// `workload:` of a scenario: a training, a collective, an operator, a loader, tasks. Out: the variant of scenario.hpp,
// defaults resolved; what hangs on the plan or the cluster is left to plan/ and load/.
#pragma once

#include <optional>
#include <string>

#include "model/scenario/figures.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// A workload, and its own settings of synchronisation (a collective names its algorithm itself).
struct ReadWorkload {
  Workload workload;
  bool states_global_batch = false;
  std::optional<double> global_batch_per_gpu;  ///< instead of it
  std::optional<MappingReader> collective;     ///< whose keys of synchronisation overrule the plan's
};

/// Exactly one of train, collective, operator and tasks. `cluster` gives defaults and limits (ranks, GPU numbers).
ReadWorkload read_workload(const Field& field, const Cluster& cluster);

/// Sets members that follow from `fusions`.
void complete_code(TrainerCode& code);

/// Work and its repetitions: { kind: matmul, m: 4096, …, repeat: 50 }. The work's name may be a key as well:
/// { matmul: { m: 4096, … }, repeat: 50 }.
struct StatedWork {
  YamlNode kind, keys;  ///< its name, and what else is said of it
  std::string path;
  int repeat = 1;

  [[nodiscard]] Field name() const { return {kind, join_path(path, "kind")}; }
  [[nodiscard]] Field shape() const { return {keys, path}; }
};
StatedWork read_stated_work(const Field& field);

/// The operator that the work names, which the GPU must run.
Operator read_operator(const StatedWork& work, const Gpu& gpu);

/// The same on the processor, for `on: cpu`; complains at the kind where the CPU has none such.
HostWorkload read_host_operator(const Field& kind, const Field& field, const Cpu& cpu);
/// `kind: memory_walk` with `on: gpu`: a pointer chase over its memory.
HostWorkload read_gpu_chase(const Field& field, const Gpu& gpu);

/// `usual` is the node's storage.
DataLoader read_loader(const Field& field, const Storage& usual);
LoaderWorkload read_loader_workload(const Field& field, const Storage& usual);
StorageWorkload read_storage_workload(const Field& field, bool write, const Storage& usual);
/// `checkpoint:` of a training; `of_node`: what `storage: node` is.
Checkpoint read_checkpoint(const Field& field, const Storage& of_node);
DataShape read_data(const Field& field, const ModelConfig& model);
void read_freeze(const Field& field, const ModelConfig& model, TrainedParts& parts);
void read_lora(const Field& field, const ModelConfig& model, TrainedParts& parts);
/// Throws ScenarioError at `train` where everything is frozen.
void check_something_is_trained(const Field& train, const ModelConfig& model, const TrainedParts& parts);

/// A word, or a format with its recipe, `{ fp8: { scaling: block } }`, which may also stand beside it or alone. The
/// model must be read.
void read_training_precision(const MappingReader& train, TrainWorkload& workload);
/// Complains where the GPU has no units for the format, or no kernels with block-scaled operands do such work.
void check_training_precision(const MappingReader& train, const TrainWorkload& workload, const Gpu& gpu);
void check_precision(const Operator& op, const Gpu& gpu, const Field& field);
void check_precision(Precision precision, const ModelConfig& model, const Gpu& gpu, const Field& field);
/// "v100-sxm2-16gb has no units for bf16".
std::string no_units(const Gpu& gpu, Precision precision);

TasksWorkload read_tasks(const Field& field, const Cluster& cluster);

}  // namespace foretrain

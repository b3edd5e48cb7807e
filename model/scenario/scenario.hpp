// A scenario as plain values: what the YAML says, with every default resolved. Made by load.hpp, and by nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/base/error.hpp"
#include "model/cost/calibration.hpp"
#include "model/cost/compression.hpp"
#include "model/cost/launches.hpp"
#include "model/cost/storage.hpp"
#include "model/hardware/cluster.hpp"
#include "model/hardware/precision.hpp"
#include "model/workload/batching.hpp"
#include "model/workload/data_loader.hpp"
#include "model/workload/host_operators.hpp"
#include "model/workload/model.hpp"
#include "model/workload/model_config.hpp"
#include "model/workload/operator.hpp"
#include "model/workload/training_parts.hpp"

namespace foretrain {

enum class Optimizer { sgd, momentum, adam, adamw, adamw_8bit };
/// selective: attention is run again (arXiv 2205.05198); selective_operators: all but attention and every other matrix
/// product is (torchtitan's list of operators); full: the whole layer.
enum class Recompute { none, selective, selective_operators, full };
enum class SyncAlgorithm {
  automatic,
  naive,
  tree,
  double_tree,
  ring,
  bidirectional_ring,
  halving_doubling,
  hierarchical,
  parameter_server,
  multi_ring,                    ///< one ring per network card, or per set of NVLink lanes
  hierarchical_leader,           ///< reduce to one rank per node, exchange between those, broadcast
  pairwise,                      ///< every two ranks exchange what they owe each other, one partner per phase
  in_network,                    ///< the switches add up and multicast
  hierarchical_parameter_server  ///< one push and one pull per machine
};
/// Whether an algorithm has servers: Sync::servers, placement and consistency mean something.
constexpr bool has_servers(SyncAlgorithm algorithm) {
  return algorithm == SyncAlgorithm::parameter_server || algorithm == SyncAlgorithm::hierarchical_parameter_server;
}

enum class ServerPlacement { cpu, gpu, dedicated, colocated };
enum class CollectiveOperation { all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_receive };

struct TrainWorkload {
  ModelConfig model;
  std::int64_t global_batch = 1;  ///< samples per optimizer step over the whole cluster
  std::int64_t micro_batch = 1;   ///< samples per replica per pass
  Precision precision = Precision::bf16;
  Optimizer optimizer = Optimizer::adamw;
  Recompute recompute = Recompute::none;
  AttentionKind attention = AttentionKind::flash;
  KernelSet kernels = KernelSet::fused;
  bool master_weights =
      false;                ///< an fp32 copy of 2-byte weights beside the optimizer's two states (key master_weights)
  bool fused_loss = false;  ///< cross-entropy makes no fp32 copies of the logits (key loss: eager | fused)
  std::optional<double> training_samples;  ///< sequences or images to train on, for time_to_train
  std::optional<DataLoader> loader;        ///< without: data are there when they are needed
  TrainedParts parts;                      ///< frozen parts and adapters (keys freeze and lora)
  std::optional<DataShape> data;           ///< how samples differ
  /// Standard deviation of a worker's compute time from iteration to iteration, as a share of its mean: lognormal,
  /// independent between workers (parameter servers; key compute_spread).
  double compute_spread = 0.0;
};

/// How `groups` groups share ranks. blocked: consecutive ranks form a group; strided: rank r belongs to group r mod
/// groups (data-parallel groups beside tensor-parallel ones).
enum class RankGrouping { blocked, strided };

/// Its algorithm, servers and placement are those of Plan::sync.
struct CollectiveWorkload {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  Bytes size;
  int ranks = 0;   ///< the first GPUs of the cluster; all of them unless the scenario says otherwise
  int groups = 1;  ///< into which the ranks are divided; all carry out the operation at the same time
  RankGrouping layout = RankGrouping::blocked;
};

struct OperatorWorkload {
  Operator op;
  int repeat = 1;
};

/// An operator on the node's processor (`on: cpu`), or a walk over a GPU's memory.
struct HostWorkload {
  std::string name;
  std::variant<MemoryWalk, CpuMatmul, GpuChase> work;
  int repeat = 1;
};

/// Requests to storage alone.
struct StorageWorkload {
  Storage storage;
  DiskPattern pattern;
  Bytes size;  ///< all requests together
};

/// A data loader alone, emptied as fast as it delivers.
struct LoaderWorkload {
  DataLoader loader;
  double batch = 1.0;  ///< samples
};

/// A model's forward pass, or forward and backward, for one batch.
struct ModelCall {
  ModelConfig model;
  std::int64_t batch = 1;
  Precision precision = Precision::fp32;
  AttentionKind attention = AttentionKind::flash;
  bool backward = false;
  std::optional<ExecutionMode> execution;  ///< Plan::execution where nothing is said
};

/// One entry of `workload.tasks`.
struct ScenarioTask {
  enum class Kind { op, call, copy, page_lock, sleep, synchronize, item, print };
  std::string id;
  std::string on;  ///< "gpu0", "gpu0:stream1", "cpu", "gpu0:d2h"
  Kind kind = Kind::op;
  Operator op;                    ///< kind op
  std::optional<ModelCall> call;  ///< kind call
  std::string enqueued_by;        ///< host thread that launches it ("cpu"); empty: it is there when the device is
  int loop = -1;                  ///< into TasksWorkload::loops; -1: none
  int repeat = 1;
  std::string source;  ///< kind copy: "gpu0" or "cpu" or "disk"
  std::string destination;
  Bytes size;          ///< kinds copy, item, print and page_lock (allocating page-locked host memory)
  bool pinned = true;  ///< kind copy: the host side is page-locked memory
  Seconds duration;    ///< kind sleep
  std::vector<std::string> after;
  SourcePosition where;
};
struct TasksWorkload {
  std::vector<ScenarioTask> tasks;
  std::vector<int> loops;  ///< how often each loop runs; the tasks of a loop follow each other in `tasks`
};

struct Sync {
  SyncAlgorithm algorithm = SyncAlgorithm::automatic;
  /// hierarchical: ranks per innermost group, groups per next larger group, …; what is left is the top level. Empty:
  /// the ranks of a node, then the nodes.
  std::vector<int> levels;
  int servers = 1;
  ServerPlacement placement = ServerPlacement::cpu;
  enum class Consistency { synchronous, asynchronous, bounded } consistency = Consistency::synchronous;
  int staleness = 0;                                                             ///< bounded(k)
  enum class Assignment { balanced, hashed } assignment = Assignment::balanced;  ///< of keys to servers
  Bytes split = Bytes(4e6);  ///< keys above this size are cut into pieces
  enum class Priority { arrival, first_layer } priority = Priority::arrival;
  bool barrier = false;       ///< no weight is pulled before all of the step's gradients are applied
  bool local_reduce = false;  ///< a machine's GPUs add up first and push once
  struct SlowWorkers {
    int count = 0;
    double factor = 1.0;  ///< of compute time
  } slow_workers;
  Bytes bucket = Bytes(25e6);
  Bytes first_bucket;  ///< the first one to become ready, where it has a size of its own; zero: as the others
  /// Whether gradients become ready layer by layer, and a layer larger than a bucket is cut, or tensor by tensor, and a
  /// tensor is never cut (PyTorch's DistributedDataParallel).
  enum class Bucketing { by_layer, by_tensor } bucketing = Bucketing::by_layer;
  bool overlap = true;
  bool every_micro_batch = false;  ///< gradients are synchronised after each micro-batch, not after the last alone
  Precision gradient_precision = Precision::fp32;
  Compression compression;
};

/// What is kept in host memory between its uses (key plan.offload: a word or a list of them).
struct Offload {
  bool optimizer = false;    ///< states and master weights; the host's cores do the update
  bool parameters = false;   ///< weights; copied to the GPU layer by layer, in each pass
  bool activations = false;  ///< what layers keep for the backward pass
  [[nodiscard]] bool any() const { return optimizer || parameters || activations; }
};

struct Plan {
  int data = 1, tensor = 1, pipeline = 1, interleave = 1, context = 1, expert = 1;
  bool sequence_parallel = false;
  int zero = 0;
  bool reshard_after_forward = true;  ///< zero 3: weights are gathered again for the backward pass
  Offload offload;
  Sync sync;
  bool single_process = false;  ///< one Python process drives all GPUs of a node (key plan.processes: single | per_gpu)
  ExecutionMode execution = ExecutionMode::eager;
};

/// GPUs that train: all but those of machines that are dedicated parameter servers, one server each.
constexpr std::int64_t worker_gpus(const Plan& plan, const Cluster& cluster) {
  const bool dedicated = has_servers(plan.sync.algorithm) && plan.sync.placement == ServerPlacement::dedicated;
  return (static_cast<std::int64_t>(cluster.nodes) - (dedicated ? plan.sync.servers : 0)) * cluster.gpus_per_node;
}

/// One end of background traffic.
struct BackgroundPlace {
  enum class Kind { gpu, node_memory, memory_of_gpu };  ///< memory_of_gpu: of the socket that is nearest to the GPU
  Kind kind = Kind::gpu;
  int number = 0;  ///< GPU rank, or node
  int socket = 0;  ///< node_memory
};

/// Traffic of others, which lasts as long as the scenario: another job, data loading, checkpoint writing.
struct BackgroundFlow {
  BackgroundPlace from, to;
  BytesPerSecond rate = BytesPerSecond::infinity();  ///< at most; infinite: all that its fair share allows
  SourcePosition where;                              ///< of its destination
};

using Workload = std::variant<TrainWorkload, CollectiveWorkload, OperatorWorkload, TasksWorkload, HostWorkload,
                              StorageWorkload, LoaderWorkload>;

struct Scenario {
  std::string name;
  std::string description;
  Cluster cluster;
  Workload workload;
  Plan plan;
  Calibration calibration;
  std::vector<BackgroundFlow> background;
  std::map<std::string, SourcePosition> where;  ///< dotted key → where it was written
};

}  // namespace foretrain

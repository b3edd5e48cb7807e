// The parallel plan of a training, with the synchronisation of its gradients.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/words.hpp"
#include "model/collectives/operation.hpp"
#include "model/cost/compression.hpp"
#include "model/cost/launches.hpp"
#include "model/hardware/cluster.hpp"
#include "model/workload/trainer_code.hpp"

namespace foretrain {

/// When a rule of scenarios/buckets.yaml leaves all gradients in one bucket.
enum class BucketsWhole { never, without_overlap, always };

struct Sync {
  SyncAlgorithm algorithm = SyncAlgorithm::automatic;
  /// hierarchical: ranks per innermost group, groups per next larger group, …; what is left is the top level. Empty:
  /// the ranks of a node, then the nodes.
  std::vector<int> levels;
  int servers = 1;
  ServerPlacement placement = ServerPlacement::cpu;
  enum class Consistency { synchronous, asynchronous, bounded } consistency = Consistency::synchronous;
  int staleness = 0;  ///< bounded(k)
  /// Largest lead of the fastest worker over the slowest, in steps; no simulation reaches a greater bound.
  static constexpr int most_lead = 32;
  [[nodiscard]] bool waits_for_slowest() const {
    return consistency == Consistency::synchronous || (consistency == Consistency::bounded && staleness <= most_lead);
  }
  enum class Assignment { balanced, hashed } assignment = Assignment::balanced;  ///< distribution of keys over servers
  Bytes split = Bytes(4e6);  ///< keys above this size are cut into pieces
  enum class Priority { arrival, first_layer } priority = Priority::arrival;
  bool barrier = false;       ///< no weight is pulled before all of the step's gradients are applied
  bool local_reduce = false;  ///< a machine's GPUs add up first and push once
  struct SlowWorkers {
    int count = 0;
    double factor = 1.0;  ///< their compute time over the others'
  } slow_workers;
  std::string bucket_rule;     ///< names an entry of scenarios/buckets.yaml; empty where `bucket` is stated itself
  Bytes bucket = Bytes(25e6);  ///< ZeRO-3 knows none
  Bytes first_bucket;          ///< the first one to become ready, where it has a size of its own; zero: as the others
  /// Whether gradients become ready layer by layer, and a layer larger than a bucket is cut, or tensor by tensor, and a
  /// tensor is never cut (PyTorch's DistributedDataParallel).
  enum class Bucketing { by_layer, by_tensor } bucketing = Bucketing::by_layer;
  bool overlap = true;
  bool sync_each_micro_batch = false;  ///< gradients are synchronised after each micro-batch, not after the last alone
  bool separate_bucket_buffers = false;  ///< gradients are copied into buckets, which have memory of their own
  /// Kernels that add a micro-batch's gradients to those before it. fused: the products that make them; added: a kernel
  /// a tensor; clipped: the same, behind a norm and a clipping of each micro-batch's own.
  enum class Accumulation { fused, added, clipped } accumulation = Accumulation::fused;
  bool fp32_accumulation = false;  ///< micro-batches add up beside the gradients of a pass, which stay
  Precision gradient_precision = Precision::fp32;
  /// Format of ZeRO's gathers and workers' pulls; default: that of the weights (bf16 in trainings that cast operands).
  std::optional<Precision> parameter_precision = std::nullopt;
  /// Gathering of updated weights under ZeRO-1 and 2. All-gathers: one for each of the gradients' buckets
  /// (Megatron-Core), or one (DeepSpeed). Broadcasts, where whole tensors have an owner that updates them: one by each
  /// owner (InternEvo), or one of each tensor (PyTorch's ZeroRedundancyOptimizer).
  enum class Gather { buckets, whole, owners, tensors } gather = Gather::buckets;
  /// Beside the next step's first forward passes, which wait for the weights of their layers; else behind the update.
  bool gather_overlap = false;
  [[nodiscard]] bool has_owners() const { return gather == Gather::owners || gather == Gather::tensors; }
  Compression compression;
};

/// In which order a stage takes its micro-batches (key plan.schedule). gpipe: all forward passes first (Huang et al.,
/// "GPipe", NeurIPS 2019); one_forward_one_backward, "1f1b": as many as later stages need to begin (PipeDream-flush);
/// interleaved: the same over several chunks of layers a stage (Megatron-LM). zero_bubble: gradients of weights are put
/// off to where a stage would wait (Qi et al., arXiv 2401.10241: ZB-H1; with two chunks a stage, ZB-V). dualpipe:
/// micro-batches enter at both ends, and a forward pass runs beside a backward pass (DeepSeek-V3, arXiv 2412.19437).
/// v_half, v_min: two chunks a stage as ZB-V has them, with about a half and a third of its activations (Qi et al.,
/// arXiv 2405.15362).
enum class PipelineSchedule { gpipe, one_forward_one_backward, interleaved, zero_bubble, dualpipe, v_half, v_min };
template <>
constexpr std::string_view enumerator_word<PipelineSchedule::one_forward_one_backward>() {
  return "1f1b";
}

/// Behaviour of a stage while its activations, or their gradients, travel to the next one (key
/// plan.pipeline_messages). It goes on with its next pass, or waits for their arrival.
enum class PipelineMessages { asynchronous, blocking };

/// Dimensions that divide ranks (words of key plan.order).
enum class ParallelDimension { tensor, context, expert, data, pipeline };

/// Split of a step's samples among replicas on nodes of several kinds (key plan.split): equally, by the peak rates of
/// their GPUs, or so that all replicas finish their passes together.
enum class BatchSplit { equal, proportional, best };

/// Gradient reduction under ZeRO-1 (key by of plan.zero): each rank is sent its part, or all of them as without ZeRO.
enum class ZeroBy { scatter, all_reduce };
/// Gradients under ZeRO-2 (key gradients of plan.zero). Each micro-batch's are scattered, and a rank adds up
/// its part alone; or all are kept whole until the last one, which is ZeRO-1's memory and traffic.
enum class ZeroGradients { scattered, kept };

struct Plan {
  /// State that is kept in host memory between its uses (key plan.offload: a word or a list of them).
  struct Offload {
    bool optimizer = false;    ///< states and master weights; the host's cores do the update
    bool parameters = false;   ///< weights; copied to the GPU layer by layer, in each pass
    bool activations = false;  ///< kept by layers for the backward pass
    [[nodiscard]] bool any() const { return optimizer || parameters || activations; }
  };

  int data = 1, tensor = 1, pipeline = 1, interleave = 1, context = 1, expert = 1;
  ContextMethod context_method = ContextMethod::ring;
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  PipelineMessages pipeline_messages = PipelineMessages::asynchronous;
  /// Embedding and loss count as a layer each when layers are divided among stages (Megatron-LM:
  /// --account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split).
  bool embedding_in_pipeline = false;
  /// Tensor ranks hold different experts whole instead of a part of each (key expert_tensor: 1). `expert` then counts
  /// the ranks beside them among which experts are divided further, and the key all of them.
  bool folded_experts = false;
  ExpertDispatch expert_dispatch = ExpertDispatch::all_to_all;
  bool expert_comm_overlap = false;  ///< tokens travel behind the kernels of another micro-batch or chunk
  bool sequence_parallel = false;
  bool tensor_overlap = false;  ///< gathers and scatters of tensor ranks run in chunks behind their products
  /// Which dimension runs over neighbouring ranks: the fastest first. Megatron-LM's own by default (arXiv 2104.04473,
  /// section 3.2), which keeps tensor-parallel ranks on one node.
  std::array<ParallelDimension, 5> order = {ParallelDimension::tensor, ParallelDimension::context,
                                            ParallelDimension::expert, ParallelDimension::data,
                                            ParallelDimension::pipeline};
  std::optional<BatchSplit> split;  ///< if stated
  bool balance_by_speed = false;    ///< stages hold layers by the speed of their GPUs (key stage_layers: by_speed)
  std::vector<int> stage_layers;    ///< by stage, where it is stated or follows from their speed; empty: as many each
  std::vector<int> placement;       ///< nodes in the order of ranks; empty: all of the cluster's, as they are numbered
  int zero = 0;
  ZeroBy zero_by = ZeroBy::scatter;
  ZeroGradients zero_gradients = ZeroGradients::scattered;
  int shard = 0;  ///< ranks over which `zero` divides, as often as there are replicas of these (HSDP); 0: all of them
  bool reshard_after_forward = true;  ///< zero 3: weights are gathered again for the backward pass
  Offload offload;
  bool pinned_offload = true;     ///< host memory of weights, gradients and states is pinned (key pinned_offload)
  bool offload_to_disks = false;  ///< offloaded state is on the machine's disks, not in its memory (key offload_to)
  int host_threads = 0;           ///< of each process, for updates on the host; 0: cores are divided among processes
  /// Parameters of a shard whose gradients are widened to fp32 for the update at a time; 0: they are updated as they
  /// are.
  double update_group = 0.0;
  double gathered_parameters = 0.0;  ///< ZeRO-3 keeps so many gathered; 0: a layer and the one prefetched behind it
  /// Share of a GPU's memory that a plan leaves free (key headroom): nine of ten runs of cases_nanotron_h100.csv need
  /// at most that much more than predicted.
  double headroom = 0.06;
  Sync sync;
  bool single_process = false;  ///< one Python process drives all GPUs of a node (key plan.processes: single | per_gpu)
  ExecutionMode execution = ExecutionMode::eager;
  GraphedParts graphed_parts = GraphedParts::none;
};

/// Whether the schedule does a backward pass in two parts: gradients of inputs, and those of weights later.
inline bool splits_backward(PipelineSchedule schedule) { return schedule >= PipelineSchedule::zero_bubble; }

/// Whether expert all-to-alls count as hidden in each pass; DualPipe's pairs of passes hide all that is in them.
inline bool hides_exchanges(const Plan& plan) {
  return plan.expert_comm_overlap && plan.schedule != PipelineSchedule::dualpipe;
}

/// Ranks that hold the same parameters and sum their gradients: data and context ranks, under DualPipe of two stages.
inline int replicas_of(const Plan& plan) {
  return plan.data * plan.context * (plan.schedule == PipelineSchedule::dualpipe ? 2 : 1);
}

/// Ranks over which ZeRO divides what they hold, and how many such groups hold the same.
inline int shards_of(const Plan& plan) { return plan.shard > 0 ? plan.shard : replicas_of(plan); }
inline int copies_of_shard(const Plan& plan) { return replicas_of(plan) / shards_of(plan); }

/// Whether a rank holds its part of the gradients alone.
inline bool divides_gradients(const Plan& plan) {
  return plan.zero == 3 || (plan.zero == 2 && plan.zero_gradients == ZeroGradients::scattered);
}

/// Whether gradients leave after every micro-batch; so do ZeRO-3's, unit by unit.
inline bool synchronises_every_micro_batch(const Plan& plan) {
  return plan.zero < 3 && (plan.sync.sync_each_micro_batch || divides_gradients(plan));
}

/// One rank's share of a stage's `parameters` if ZeRO divides them; those in experts over fewer ranks, as expert
/// parallelism has divided them already.
inline double parameters_of_shard(const Plan& plan, double parameters, double in_experts) {
  const double shards = shards_of(plan);
  return (parameters - in_experts) / shards + in_experts / (shards / plan.expert);
}

/// Whether parameter servers keep the optimizer's states and apply the gradients. Where models are split, servers only
/// add up: each rank updates its own part.
inline bool servers_update(const Plan& plan) {
  return has_servers(plan.sync.algorithm) && (plan.data > 1 || plan.sync.placement == ServerPlacement::dedicated) &&
         std::max({plan.tensor, plan.pipeline, plan.context, plan.expert}) == 1;
}

/// GPUs of the nodes that the plan uses.
inline std::int64_t plan_gpus(const Plan& plan, const Cluster& cluster) {
  if (plan.placement.empty()) return cluster.gpus();
  std::int64_t gpus = 0;
  for (const int node : plan.placement) gpus += cluster.gpus_on(node);
  return gpus;
}

/// GPUs that train: all but those of machines that are dedicated parameter servers, one server each.
inline std::int64_t worker_gpus(const Plan& plan, const Cluster& cluster) {
  const bool dedicated = has_servers(plan.sync.algorithm) && plan.sync.placement == ServerPlacement::dedicated;
  const std::int64_t servers = dedicated ? plan.sync.servers : 0;
  return plan_gpus(plan, cluster) - servers * cluster.gpus_per_node;
}

}  // namespace foretrain

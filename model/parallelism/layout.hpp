// Which rank does what: the order of parallel dimensions over the GPUs of a cluster.
#pragma once

#include <cstdint>
#include <vector>

#include "model/base/hash.hpp"
#include "model/collectives/rank_groups.hpp"
#include "model/parallelism/pipeline_order.hpp"
#include "model/workload/build.hpp"
#include "model/workload/training.hpp"

namespace foretrain {

/// Layout of a training's model on the ranks of one replica.
BuildOptions build_options(const TrainWorkload& train, const Plan& plan);

/// The nodes that the plan uses and their GPUs, in the order of ranks.
std::vector<int> nodes_of(const Plan& plan, const Cluster& cluster);
std::vector<int> gpus_of(const Plan& plan, const Cluster& cluster);

/// GPUs of a node for which one process launches kernels.
int gpus_of_process(const Plan& plan, const Cluster& cluster);

/// The datasheet's rate of GEMMs per GPU: the mean over the plan's.
FlopsPerSecond peak_rate(const Plan& plan, const Cluster& cluster, Precision precision);

/// Passes of each replica per optimizer step.
int micro_batches(const TrainWorkload& train, const Plan& plan);

/// Ranks that work together. gradients: those that hold the same parameters and sum their gradients, over data and
/// context, under DualPipe of both stages that hold them; expert_gradients: those that hold the same experts. Where
/// ZeRO divides over a part of these (Plan::shard), shards: neighbours that divide among them; copies: those that hold
/// the same shard; and the same of experts. neighbours: a rank and its counterpart in the next stage, which is the
/// first one after the last.
enum class GroupKind {
  tensor,
  context,
  expert,
  gradients,
  expert_gradients,
  shards,
  expert_shards,
  copies,
  expert_copies,
  neighbours
};

constexpr bool is_inside_layers(GroupKind kind) {
  return kind == GroupKind::tensor || kind == GroupKind::context || kind == GroupKind::expert;
}

/// Whether the group's collectives move gradients or weights of experts.
constexpr bool is_of_experts(GroupKind kind) {
  return kind == GroupKind::expert || kind == GroupKind::expert_gradients || kind == GroupKind::expert_shards ||
         kind == GroupKind::expert_copies;
}
constexpr bool is_of_parameters(GroupKind kind) { return !is_inside_layers(kind) && kind != GroupKind::neighbours; }

/// Which GPU does what. Ranks are numbered over the dimensions of plan.order, the fastest first: by default
/// rank = ((stage · data + d) · context + c) · tensor + t, so that tensor-parallel ranks are neighbours on one node.
/// They fill the nodes of plan.placement one after the other.
///
/// Experts are spread over the replicas (data and context) of a stage and tensor index: over those with neighbouring
/// ranks where `expert` stands before `data` in the order, else over those that are as far apart as possible. Where
/// they are folded (Plan::folded_experts), the tensor ranks beside these hold others, and all exchange tokens with each
/// other.
class RankLayout {
 public:
  /// Rank r is GPU r.
  explicit RankLayout(const Plan& plan);
  RankLayout(const Plan& plan, const Cluster& cluster);

  /// Its number in the cluster.
  [[nodiscard]] int gpu(int stage, int d, int c, int t) const {
    const int rank = stage * pipeline_.stride + d * data_.stride + c * context_.stride + t * tensor_.stride;
    return gpu_of_rank_.empty() ? rank : gpu_of_rank_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] int data() const { return data_.size; }
  [[nodiscard]] int gpus() const { return ranks_per_stage() * pipeline_.size; }
  [[nodiscard]] int ranks_per_stage() const { return replicas() * tensor_.size; }
  /// By number in the cluster, up to the last one used; -1: not used.
  [[nodiscard]] std::vector<int> stage_of_gpu() const;

  /// All groups of a kind on the ranks of `stage`, as GPUs; of neighbours, those with the stage behind it.
  [[nodiscard]] RankGroups groups(GroupKind kind, int stage) const;
  /// The stages that these groups have ranks of, ascending.
  [[nodiscard]] std::vector<int> stages(GroupKind kind, int stage) const;

  /// Equal layouts have the same groups of every kind.
  bool operator==(const RankLayout&) const = default;
  [[nodiscard]] std::uint64_t hash() const {
    return hash_of(tensor_.size, context_.size, data_.size, pipeline_.size, data_.stride, pipeline_.stride, expert_,
                   shard_, gpu_of_rank_.size());
  }

 private:
  struct Dimension {
    int size = 1;
    int stride = 1;  ///< between ranks that are neighbours in this dimension
    bool operator==(const Dimension&) const = default;
  };
  [[nodiscard]] int replicas() const { return data_.size * context_.size; }
  /// Replicas are numbered as their ranks.
  [[nodiscard]] int gpu_of_replica(int stage, int replica, int t) const;

  Dimension tensor_, context_, data_, pipeline_;
  int expert_, shard_;
  bool folded_experts_ = false;
  ChunkPlacement placement_;
  bool experts_on_neighbours_ = true;
  std::vector<int> gpu_of_rank_;  ///< empty where rank r is GPU r
};

/// For each stage the nodes that hold some of its ranks, in the order of ranks; machines of servers hold none.
std::vector<std::vector<int>> nodes_of_stages(const Plan& plan, const Cluster& cluster);

/// Host time of a framework's own code for a block's pass: layer_dispatch, and p2p_dispatch_overhead for each
/// other tensor rank where stages lie on several nodes.
Seconds framework_overhead(const Plan& plan, const Cluster& cluster, const TrainWorkload& train);

}  // namespace foretrain

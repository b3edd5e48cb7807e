// Which rank does what: the order of parallel dimensions over the GPUs of a cluster.
#pragma once

#include <vector>

#include "model/parallelism/pipeline_order.hpp"
#include "model/workload/build.hpp"
#include "model/workload/training.hpp"

namespace foretrain {

/// How a training's model is laid out on the ranks of one replica.
BuildOptions build_options(const TrainWorkload& train, const Plan& plan);

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

/// Ranks in Megatron-LM's order, fastest first: tensor, context, data, pipeline (arXiv 2104.04473, section 3.2):
/// rank = ((stage · data + d) · context + c) · tensor + t. Tensor-parallel ranks are thus neighbours on one node.
class RankLayout {
 public:
  explicit RankLayout(const Plan& plan)
      : tensor_(plan.tensor),
        context_(plan.context),
        data_(plan.data),
        pipeline_(plan.pipeline),
        expert_(plan.expert),
        shard_(shards_of(plan)),
        placement_(plan) {}

  [[nodiscard]] int rank(int stage, int d, int c, int t) const {
    return ((stage * data_ + d) * context_ + c) * tensor_ + t;
  }
  [[nodiscard]] int ranks_per_stage() const { return data_ * context_ * tensor_; }
  [[nodiscard]] int gpus() const { return ranks_per_stage() * pipeline_; }

  /// All groups of a kind on the ranks of `stage`; of neighbours, those with the stage behind it.
  [[nodiscard]] std::vector<std::vector<int>> groups(GroupKind kind, int stage) const;
  /// The stages that these groups have ranks of, ascending.
  [[nodiscard]] std::vector<int> stages(GroupKind kind, int stage) const;

 private:
  [[nodiscard]] int replicas() const { return data_ * context_; }
  /// The groups of one stage.
  [[nodiscard]] std::vector<std::vector<int>> groups_within(GroupKind kind, int stage) const;

  int tensor_, context_, data_, pipeline_, expert_, shard_;
  ChunkPlacement placement_;
};

}  // namespace foretrain

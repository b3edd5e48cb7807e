// Which rank does what: the order of parallel dimensions over the GPUs of a cluster.
#pragma once

#include <vector>

#include "model/parallelism/plan.hpp"
#include "model/workload/build.hpp"
#include "model/workload/training.hpp"

namespace foretrain {

/// How a training's model is laid out on the ranks of one replica.
BuildOptions build_options(const TrainWorkload& train, const Plan& plan);

/// Passes of each replica per optimizer step.
int micro_batches(const TrainWorkload& train, const Plan& plan);

/// Ranks in Megatron-LM's order, fastest first: tensor, context, data, pipeline (arXiv 2104.04473, section 3.2):
/// rank = ((stage · data + d) · context + c) · tensor + t. Tensor-parallel ranks are thus neighbours on one node.
class RankLayout {
 public:
  explicit RankLayout(const Plan& plan)
      : tensor_(plan.tensor),
        context_(plan.context),
        data_(plan.data),
        pipeline_(plan.pipeline),
        expert_(plan.expert) {}

  [[nodiscard]] int rank(int stage, int d, int c, int t) const {
    return ((stage * data_ + d) * context_ + c) * tensor_ + t;
  }
  [[nodiscard]] int ranks_per_stage() const { return data_ * context_ * tensor_; }
  [[nodiscard]] int gpus() const { return ranks_per_stage() * pipeline_; }

  /// Ranks that hold the same parameters and sum their gradients: one group per tensor index, over data and context.
  [[nodiscard]] std::vector<std::vector<int>> gradient_groups(int stage) const;
  /// Groups of one kind on the ranks of `stage`; only those that start within the first `window` ranks of the stage
  /// (all others repeat them on other nodes).
  [[nodiscard]] std::vector<std::vector<int>> tensor_groups(int stage, int window) const;
  [[nodiscard]] std::vector<std::vector<int>> context_groups(int stage, int window) const;
  [[nodiscard]] std::vector<std::vector<int>> expert_groups(int stage, int window) const;

 private:
  int tensor_, context_, data_, pipeline_, expert_;
};

}  // namespace foretrain

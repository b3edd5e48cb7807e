#include "model/parallelism/layout.hpp"

#include <algorithm>

namespace foretrain {

BuildOptions build_options(const TrainWorkload& train, const Plan& plan) {
  BuildOptions options;
  options.micro_batch = train.micro_batch;
  options.precision = train.precision;
  options.attention = train.attention;
  options.tensor = plan.tensor;
  options.context = plan.context;
  options.expert = plan.expert;
  options.folded_experts = plan.folded_experts;
  options.sequence_parallel = plan.sequence_parallel;
  options.kernels = train.kernels;
  // Tuned trainers keep a 2-byte copy of the weights, FSDP casts its shards before it gathers them.
  options.casts_weights = train.kernels == KernelSet::plain && plan.zero < 3 &&
                          bytes_per_element(storage_precision(train.precision)) < bytes_per_element(Precision::fp32);
  options.parts = train.parts;
  options.data = train.data;
  options.compiled = plan.execution == ExecutionMode::compiled;
  options.fused_loss = train.fused_loss;
  return options;
}

int micro_batches(const TrainWorkload& train, const Plan& plan) {
  return static_cast<int>(train.global_batch / (train.micro_batch * plan.data));
}

std::vector<std::vector<int>> RankLayout::groups(GroupKind kind, int stage) const {
  std::vector<std::vector<int>> groups;
  const int first_rank = rank(stage, 0, 0, 0);
  // `size` ranks, `apart` from each other.
  const auto add = [&](int first, int size, int apart) {
    std::vector<int>& group = groups.emplace_back();
    group.reserve(static_cast<std::size_t>(size));
    for (int i = 0; i < size; ++i) group.push_back(first_rank + first + i * apart);
  };
  switch (kind) {
    case GroupKind::tensor:
      for (int replica = 0; replica < replicas(); ++replica) add(replica * tensor_, tensor_, 1);
      break;
    case GroupKind::context:
      for (int d = 0; d < data_; ++d) {
        for (int t = 0; t < tensor_; ++t) add(d * context_ * tensor_ + t, context_, tensor_);
      }
      break;
    case GroupKind::expert:  // consecutive replicas with the same tensor index
      for (int first = 0; first < replicas(); first += expert_) {
        for (int t = 0; t < tensor_; ++t) add(first * tensor_ + t, std::min(expert_, replicas() - first), tensor_);
      }
      break;
    case GroupKind::gradients:
      for (int t = 0; t < tensor_; ++t) add(t, replicas(), tensor_);
      break;
    case GroupKind::expert_gradients:
      for (int e = 0; e < expert_; ++e) {
        for (int t = 0; t < tensor_; ++t) add(e * tensor_ + t, replicas() / expert_, expert_ * tensor_);
      }
      break;
    case GroupKind::neighbours:
      for (int r = first_rank; r < first_rank + ranks_per_stage(); ++r) {
        groups.push_back({r, (r + ranks_per_stage()) % gpus()});
      }
      break;
  }
  return groups;
}

}  // namespace foretrain

#include "model/parallelism/layout.hpp"

namespace foretrain {

BuildOptions build_options(const TrainWorkload& train, const Plan& plan) {
  BuildOptions options;
  options.micro_batch = train.micro_batch;
  options.precision = train.precision;
  options.attention = train.attention;
  options.tensor = plan.tensor;
  options.context = plan.context;
  options.expert = plan.expert;
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

std::vector<std::vector<int>> RankLayout::gradient_groups(int stage) const {
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(tensor_));
  for (int t = 0; t < tensor_; ++t) {
    auto& group = groups[static_cast<std::size_t>(t)];
    group.reserve(static_cast<std::size_t>(data_) * static_cast<std::size_t>(context_));
    for (int d = 0; d < data_; ++d) {
      for (int c = 0; c < context_; ++c) group.push_back(rank(stage, d, c, t));
    }
  }
  return groups;
}

std::vector<std::vector<int>> RankLayout::tensor_groups(int stage, int window) const {
  std::vector<std::vector<int>> groups;
  for (int first = 0; first < ranks_per_stage() && first < window; first += tensor_) {
    std::vector<int> group;
    group.reserve(static_cast<std::size_t>(tensor_));
    for (int t = 0; t < tensor_; ++t) group.push_back(rank(stage, 0, 0, 0) + first + t);
    groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<std::vector<int>> RankLayout::context_groups(int stage, int window) const {
  std::vector<std::vector<int>> groups;
  for (int d = 0; d < data_ && d * context_ * tensor_ < window; ++d) {
    for (int t = 0; t < tensor_; ++t) {
      std::vector<int> group;
      group.reserve(static_cast<std::size_t>(context_));
      for (int c = 0; c < context_; ++c) group.push_back(rank(stage, d, c, t));
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

// Expert-parallel ranks are consecutive data-parallel ranks with the same tensor index.
std::vector<std::vector<int>> RankLayout::expert_groups(int stage, int window) const {
  std::vector<std::vector<int>> groups;
  const int replicas = data_ * context_;
  for (int first = 0; first < replicas && first * tensor_ < window; first += expert_) {
    for (int t = 0; t < tensor_; ++t) {
      std::vector<int> group;
      for (int e = first; e < first + expert_ && e < replicas; ++e) {
        group.push_back(rank(stage, e / context_, e % context_, t));
      }
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

}  // namespace foretrain

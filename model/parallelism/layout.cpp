#include "model/parallelism/layout.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>

#include "model/base/number.hpp"

namespace foretrain {

BuildOptions build_options(const TrainWorkload& train, const Plan& plan) {
  BuildOptions options;
  options.micro_batch = train.micro_batch;
  options.precision = train.precision;
  options.recipe = train.recipe;
  // Transformer Engine casts weights in the first micro-batch of a step alone (is_first_microbatch); gathered ones are
  // gone by the next.
  const double passes = number(train.global_batch) / (number(train.micro_batch) * plan.data);
  options.passes_per_cast = plan.zero == 3 ? 1.0 : std::max(passes, 1.0);
  options.attention = train.attention;
  options.tensor = plan.tensor;
  options.context = plan.context;
  options.expert = plan.expert;
  options.folded_experts = plan.folded_experts;
  options.sequence_parallel = plan.sequence_parallel;
  options.code = train.code;
  // ZeRO-3's shards are cast before they are gathered.
  options.casts_weights = train.code.cast_weights && plan.zero < 3 &&
                          bytes_per_element(storage_precision(train.precision)) < bytes_per_element(Precision::fp32);
  options.parts = train.parts;
  options.data = train.data;
  options.compiled = plan.execution == ExecutionMode::compiled;
  options.fused_loss = train.fused_loss;
  return options;
}

std::vector<int> nodes_of(const Plan& plan, const Cluster& cluster) {
  if (!plan.placement.empty()) return plan.placement;
  std::vector<int> nodes(at_index(cluster.nodes));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

std::vector<int> gpus_of(const Plan& plan, const Cluster& cluster) {
  std::vector<int> gpus;
  for (const int node : nodes_of(plan, cluster)) {
    const int first = cluster.first_gpu(node);
    for (int i = 0; i < cluster.gpus_on(node); ++i) gpus.push_back(first + i);
  }
  return gpus;
}

std::vector<int> groups_in(const std::vector<int>& nodes, const Cluster& cluster) {
  std::vector<int> groups;
  if (cluster.groups.empty()) return groups;
  for (const int node : nodes) groups.push_back(cluster.group_of_node(node));
  std::ranges::sort(groups);
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

FlopsPerSecond peak_rate(const Plan& plan, const Cluster& cluster, Precision precision) {
  if (cluster.groups.empty()) return cluster.node.gpu.matrix_rate(precision);
  FlopsPerSecond sum;
  for (const int node : nodes_of(plan, cluster)) {
    sum += cluster.node_at(node).gpu.matrix_rate(precision) * number(cluster.gpus_on(node));
  }
  return sum / number(plan_gpus(plan, cluster));
}

int micro_batches(const TrainWorkload& train, const Plan& plan) {
  return static_cast<int>(train.global_batch / (train.micro_batch * plan.data));
}

namespace {

/// `size` members of each group after the other that follow each other in it.
RankGroups in_blocks(const RankGroups& groups, std::size_t size) {
  RankGroups blocks;
  for (const std::vector<int>& group : groups) {
    for (auto rest = std::span(group); !rest.empty(); rest = rest.subspan(std::min(size, rest.size()))) {
      const auto block = rest.first(std::min(size, rest.size()));
      blocks.add({block.begin(), block.end()});
    }
  }
  return blocks;
}

/// The members of each group that have the same place in its blocks of `size`.
RankGroups across_blocks(const RankGroups& groups, std::size_t size) {
  RankGroups across;
  for (const std::vector<int>& group : groups) {
    for (std::size_t place = 0; place < size; ++place) {
      std::vector<int> same;
      for (std::size_t i = place; i < group.size(); i += size) same.push_back(group[i]);
      across.add(same);
    }
  }
  return across;
}

/// One group of all, their first members first.
std::vector<int> joined(const std::vector<std::vector<int>>& groups) {
  std::vector<int> all;
  for (std::size_t member = 0; member < groups.front().size(); ++member) {
    for (const std::vector<int>& group : groups) all.push_back(group[member]);
  }
  return all;
}

bool is_of_gradients(GroupKind kind) { return kind == GroupKind::gradients || kind == GroupKind::expert_gradients; }

}  // namespace

RankLayout::RankLayout(const Plan& plan)
    : tensor_{plan.tensor},
      context_{plan.context},
      data_{plan.data},
      pipeline_{plan.pipeline},
      expert_(plan.expert),
      shard_(shards_of(plan)),
      folded_experts_(plan.folded_experts),
      placement_(plan) {
  using enum ParallelDimension;
  int stride = 1;
  bool data_seen = false;
  for (const ParallelDimension next : plan.order) {
    if (next == expert) {
      experts_on_neighbours_ = !data_seen;
      continue;
    }
    data_seen = data_seen || next == data;
    Dimension& dimension = next == tensor ? tensor_ : next == context ? context_ : next == data ? data_ : pipeline_;
    dimension.stride = stride;
    stride *= dimension.size;
  }
}

RankLayout::RankLayout(const Plan& plan, const Cluster& cluster) : RankLayout(plan) {
  if (!plan.placement.empty()) gpu_of_rank_ = gpus_of(plan, cluster);
}

int RankLayout::gpu_of_replica(int stage, int replica, int t) const {
  const bool context_first = context_.stride < data_.stride;
  const int inner = context_first ? context_.size : data_.size;
  const int d = context_first ? replica / inner : replica % inner;
  const int c = context_first ? replica % inner : replica / inner;
  return gpu(stage, d, c, t);
}

std::vector<int> RankLayout::stage_of_gpu() const {
  std::vector<int> stage_of;
  for (int stage = 0; stage < pipeline_.size; ++stage) {
    for (const std::vector<int>& group : groups_within(GroupKind::gradients, stage)) {
      for (const int gpu : group) {
        if (stage_of.size() <= at_index(gpu)) stage_of.resize(at_index(gpu) + 1, -1);
        stage_of[at_index(gpu)] = stage;
      }
    }
  }
  return stage_of;
}

RankGroups RankLayout::groups(GroupKind kind, int stage) const {
  const auto shard = static_cast<std::size_t>(shard_), experts_shard = static_cast<std::size_t>(shard_ / expert_);
  switch (kind) {
    case GroupKind::shards:
      return in_blocks(groups(GroupKind::gradients, stage), shard);
    case GroupKind::expert_shards:
      return in_blocks(groups(GroupKind::expert_gradients, stage), experts_shard);
    case GroupKind::copies:
      return across_blocks(groups(GroupKind::gradients, stage), shard);
    case GroupKind::expert_copies:
      return across_blocks(groups(GroupKind::expert_gradients, stage), experts_shard);
    default:
      break;
  }
  RankGroups own = groups_within(kind, stage);
  const std::optional<int> mirror = placement_.mirror(stage);
  if (!mirror || !is_of_gradients(kind)) return own;
  const RankGroups others = groups_within(kind, *mirror);
  RankGroups both;
  for (std::size_t i = 0; i < own.size(); ++i) {
    std::vector<int> group = own[i];
    const std::vector<int> rest = others[i];
    group.insert(group.end(), rest.begin(), rest.end());
    both.add(group);
  }
  return both;
}

std::vector<int> RankLayout::stages(GroupKind kind, int stage) const {
  std::vector<int> stages{stage};
  switch (kind) {
    case GroupKind::tensor:
    case GroupKind::context:
    case GroupKind::expert:
      break;
    case GroupKind::neighbours:
      stages.push_back((stage + 1) % pipeline_.size);
      break;
    default:
      if (const std::optional<int> mirror = placement_.mirror(stage)) stages.push_back(*mirror);
  }
  std::ranges::sort(stages);
  return stages;
}

RankGroups RankLayout::groups_within(GroupKind kind, int stage) const {
  RankGroups groups;
  /// `count` replicas, `apart` from each other.
  const auto replicas_from = [&](int first, int count, int apart, int t) {
    std::vector<int> group;
    group.reserve(at_index(count));
    for (int i = 0; i < count; ++i) group.push_back(gpu_of_replica(stage, first + i * apart, t));
    return group;
  };
  const int sets = replicas() / expert_;  // of all experts
  switch (kind) {
    case GroupKind::tensor:
      for (int replica = 0; replica < replicas(); ++replica) {
        std::vector<int> group;
        for (int t = 0; t < tensor_.size; ++t) group.push_back(gpu_of_replica(stage, replica, t));
        groups.add(group);
      }
      break;
    case GroupKind::context:
      for (int d = 0; d < data_.size; ++d) {
        for (int t = 0; t < tensor_.size; ++t) {
          std::vector<int> group;
          for (int c = 0; c < context_.size; ++c) group.push_back(gpu(stage, d, c, t));
          groups.add(group);
        }
      }
      break;
    case GroupKind::expert:
      for (int set = 0; set < sets; ++set) {
        std::vector<std::vector<int>> of_set;
        for (int t = 0; t < tensor_.size; ++t) {
          of_set.push_back(experts_on_neighbours_ ? replicas_from(set * expert_, expert_, 1, t)
                                                  : replicas_from(set, expert_, sets, t));
        }
        if (folded_experts_) of_set = {joined(of_set)};
        for (const std::vector<int>& group : of_set) groups.add(group);
      }
      break;
    case GroupKind::gradients:
      for (int t = 0; t < tensor_.size; ++t) groups.add(replicas_from(0, replicas(), 1, t));
      break;
    case GroupKind::expert_gradients:
      for (int e = 0; e < expert_; ++e) {
        for (int t = 0; t < tensor_.size; ++t) {
          groups.add(experts_on_neighbours_ ? replicas_from(e, sets, expert_, t) : replicas_from(e * sets, sets, 1, t));
        }
      }
      break;
    case GroupKind::neighbours:
      for (int replica = 0; replica < replicas(); ++replica) {
        for (int t = 0; t < tensor_.size; ++t) {
          groups.add({gpu_of_replica(stage, replica, t), gpu_of_replica((stage + 1) % pipeline_.size, replica, t)});
        }
      }
      break;
    case GroupKind::shards:
    case GroupKind::expert_shards:
    case GroupKind::copies:
    case GroupKind::expert_copies:
      break;  // parts of others
  }
  return groups;
}

std::vector<std::vector<int>> nodes_of_stages(const Plan& plan, const Cluster& cluster) {
  const std::vector<int> stage_of_gpu = RankLayout(plan, cluster).stage_of_gpu();
  std::vector<std::vector<int>> nodes_of_stage(at_index(plan.pipeline));
  for (const int node : nodes_of(plan, cluster)) {
    const std::size_t first = at_index(cluster.first_gpu(node)), end = first + at_index(cluster.gpus_on(node));
    for (std::size_t gpu = first; gpu < std::min(end, stage_of_gpu.size()); ++gpu) {
      if (stage_of_gpu[gpu] < 0) continue;
      std::vector<int>& nodes = nodes_of_stage[at_index(stage_of_gpu[gpu])];
      if (nodes.empty() || nodes.back() != node) nodes.push_back(node);
    }
  }
  return nodes_of_stage;
}

}  // namespace foretrain

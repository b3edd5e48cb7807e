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
  options.context_method = plan.context_method;
  options.expert = plan.expert;
  options.folded_experts = plan.folded_experts;
  options.sequence_parallel = plan.sequence_parallel;
  options.code = train.code;
  // ZeRO-3's shards are cast before they are gathered.
  options.casts_weights = train.code.cache_cast_weights && plan.zero < 3 &&
                          bytes_per_element(storage_precision(train.precision)) < bytes_per_element(Precision::fp32);
  options.parts = train.parts;
  if (train.recompute == Recompute::full) options.recompute_layers = train.recompute_layers;
  options.data = train.data;
  options.compiled = plan.execution == ExecutionMode::compiled;
  options.in_graph = plan.execution == ExecutionMode::cuda_graph;
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

int gpus_of_process(const Plan& plan, const Cluster& cluster) {
  return plan.single_process ? std::min(cluster.gpus_per_node, plan.data) : 1;
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

/// Groups of `members` ranks each, which `rank_of` names by group and member.
template <typename RankOf>
RankGroups groups_of(int count, int members, const RankOf& rank_of) {
  RankGroups groups;
  std::vector<int> group(at_index(members));
  for (int number = 0; number < count; ++number) {
    for (int member = 0; member < members; ++member) group[at_index(member)] = rank_of(number, member);
    groups.add(group);
  }
  return groups;
}

/// `size` members of each group after the other that follow each other in it.
RankGroups in_blocks(const RankGroups& groups, int size) {
  RankGroups blocks;
  for (const std::vector<int>& group : groups) {
    for (auto rest = std::span(group); !rest.empty(); rest = rest.subspan(std::min(at_index(size), rest.size()))) {
      const auto block = rest.first(std::min(at_index(size), rest.size()));
      blocks.add({block.begin(), block.end()});
    }
  }
  return blocks;
}

/// The members of each group that have the same place in its blocks of `size`.
RankGroups across_blocks(const RankGroups& groups, int size) {
  RankGroups across;
  for (const std::vector<int>& group : groups) {
    for (int place = 0; place < size; ++place) {
      std::vector<int> same;
      for (std::size_t i = at_index(place); i < group.size(); i += at_index(size)) same.push_back(group[i]);
      across.add(same);
    }
  }
  return across;
}

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
    for (int place = 0; place < ranks_per_stage(); ++place) {
      const std::size_t gpu = at_index(gpu_of_replica(stage, place / tensor_.size, place % tensor_.size));
      if (stage_of.size() <= gpu) stage_of.resize(gpu + 1, -1);
      stage_of[gpu] = stage;
    }
  }
  return stage_of;
}

RankGroups RankLayout::groups(GroupKind kind, int stage) const {
  const int tensor = tensor_.size, sets = replicas() / expert_;  // of all experts
  const auto holder = [&](int set, int e) { return experts_on_neighbours_ ? set * expert_ + e : e * sets + set; };
  std::vector<int> alike{stage};  // the stages that hold the same parameters
  if (const std::optional<int> mirror = placement_.mirror(stage)) alike.push_back(*mirror);
  const auto copies = static_cast<int>(alike.size());
  switch (kind) {
    case GroupKind::tensor:
      return groups_of(replicas(), tensor, [&](int replica, int t) { return gpu_of_replica(stage, replica, t); });
    case GroupKind::context:
      return groups_of(data_.size * tensor, context_.size,
                       [&](int group, int c) { return gpu(stage, group / tensor, c, group % tensor); });
    case GroupKind::expert:
      if (folded_experts_) {
        return groups_of(sets, expert_ * tensor, [&](int set, int member) {
          return gpu_of_replica(stage, holder(set, member / tensor), member % tensor);
        });
      }
      return groups_of(sets * tensor, expert_, [&](int group, int e) {
        return gpu_of_replica(stage, holder(group / tensor, e), group % tensor);
      });
    case GroupKind::gradients:
      return groups_of(tensor, replicas() * copies, [&](int t, int replica) {
        return gpu_of_replica(alike[at_index(replica / replicas())], replica % replicas(), t);
      });
    case GroupKind::expert_gradients:
      return groups_of(expert_ * tensor, sets * copies, [&](int group, int set) {
        return gpu_of_replica(alike[at_index(set / sets)], holder(set % sets, group / tensor), group % tensor);
      });
    case GroupKind::shards:
      return in_blocks(groups(GroupKind::gradients, stage), shard_);
    case GroupKind::expert_shards:
      return in_blocks(groups(GroupKind::expert_gradients, stage), shard_ / expert_);
    case GroupKind::copies:
      return across_blocks(groups(GroupKind::gradients, stage), shard_);
    case GroupKind::expert_copies:
      return across_blocks(groups(GroupKind::expert_gradients, stage), shard_ / expert_);
    case GroupKind::neighbours:
      return groups_of(replicas() * tensor, 2, [&](int group, int next) {
        return gpu_of_replica((stage + next) % pipeline_.size, group / tensor, group % tensor);
      });
  }
  return {};
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

Seconds framework_overhead(const Plan& plan, const Cluster& cluster, const TrainWorkload& train) {
  if (plan.pipeline == 1 || plan.tensor == 1 || train.p2p_dispatch_overhead == Seconds(0.0))
    return train.layer_dispatch;
  const std::vector<std::vector<int>> nodes = nodes_of_stages(plan, cluster);
  const bool across = std::ranges::any_of(nodes, [&](const auto& of_stage) { return of_stage != nodes.front(); });
  return train.layer_dispatch + train.p2p_dispatch_overhead * (across ? plan.tensor - 1.0 : 0.0);
}

}  // namespace foretrain

#include "model/training/pricing/gradient_sync.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"

namespace foretrain {

namespace {

/// Takes a layer's tensors in the order in which its backward pass finishes them: the last first, vectors at the end.
/// The layer's time is shared out by size, as the products' work is.
void take_tensors(const PricedLayer& priced, const auto& take) {
  const Layer& layer = *priced.layer;
  double rest = layer.parameters;
  for (auto last = layer.matrices.rbegin(); last != layer.matrices.rend(); ++last) {
    const WeightMatrix& matrix = *last;
    for (std::int64_t i = 0; i < matrix.count; ++i) {
      const double elements = std::min(matrix.elements(), rest);
      const double from = 1.0 - rest / layer.parameters;
      rest -= elements;
      take({&priced, from, 1.0 - rest / layer.parameters}, elements, matrix.of_experts ? elements : 0.0,
           {{matrix.rows, matrix.columns, 1, matrix.of_experts}});
    }
  }
  const bool all = layer.parameters == 0.0;
  if (rest > 0.0 || all) take({&priced, all ? 0.0 : 1.0 - rest / layer.parameters, 1.0}, rest, 0.0, {});
}

/// Additional time of a CPU for an all-reduce of two-byte numbers.
Seconds narrow_sums(const Processor& processor, Bytes size, int ranks) {
  const Bytes sent = size * bus_bandwidth_factor(CollectiveOperation::all_reduce, ranks);
  return (sent / processor.narrow_sum_rate - sent / processor.sum_rate) / processor.share;
}

}  // namespace

GradientSync::GradientSync(const Scenario& scenario, const LayerPricer& pricer, TransferTable& transfers)
    : scenario_(scenario),
      pricer_(pricer),
      transfers_(transfers),
      replica_group_{GroupKind::gradients,       GroupKind::gradients,     GroupKind::copies,
                     replicas_of(scenario.plan), shards_of(scenario.plan), copies_of_shard(scenario.plan)},
      expert_replica_group_{GroupKind::expert_gradients,
                            GroupKind::expert_gradients,
                            GroupKind::expert_copies,
                            replica_group_.replicas / scenario.plan.expert,
                            replica_group_.in_shards / scenario.plan.expert,
                            replica_group_.of_shard},
      weight_(bytes_per_element(storage_precision(std::get<TrainWorkload>(scenario.workload).precision))),
      gathered_weight_(scenario.plan.sync.parameter_precision
                           ? bytes_per_element(*scenario.plan.sync.parameter_precision)
                           : weight_),
      gradient_(bytes_per_element(scenario.plan.sync.gradient_precision)) {
  if (scenario.plan.shard == 0) return;
  replica_group_.shards = GroupKind::shards;
  expert_replica_group_.shards = GroupKind::expert_shards;
}

/// Experts that are spread over ranks are synchronised by themselves.
void GradientSync::add_gradients(double elements, double in_experts, std::vector<WeightMatrix> matrices,
                                 Bucket& ready) const {
  if (scenario_.plan.expert == 1 || !(in_experts > 0.0)) {
    ready.gradients += {elements, std::move(matrices)};
    return;
  }
  const auto experts = std::stable_partition(matrices.begin(), matrices.end(),
                                             [](const WeightMatrix& matrix) { return !matrix.of_experts; });
  ready.gradients += {elements - in_experts, {matrices.begin(), experts}};
  ready.experts += {in_experts, {experts, matrices.end()}};
}

GradientSync::Bucket& GradientSync::Bucket::operator+=(const Bucket& later) {
  backward += later.backward;
  size += later.size;
  gradients += later.gradients;
  experts += later.experts;
  collectives += later.collectives;
  layers.insert(layers.end(), later.layers.begin(), later.layers.end());
  return *this;
}

std::vector<GradientSync::Bucket> GradientSync::parts_of(const std::vector<PricedLayer>& layers) const {
  const Sync& sync = scenario_.plan.sync;
  const bool by_tensor = sync.bucketing == Sync::Bucketing::by_tensor;
  const bool counts_matrices = sync.compression.needs_whole_gradient() || scenario_.plan.zero > 0;
  // Dispatch runs ahead of the device over a whole pass; where it takes longer, every bucket is late by its share.
  LayerCost whole;
  for (const PricedLayer& priced : layers) whole += priced.cost * priced.count;
  const TimeBreakdown pass = whole.whole_backward().time_breakdown();
  const auto segment_of = [&](const LayerCost& part) {
    TimeBreakdown segment = part.whole_backward().time_breakdown();
    segment.host = Seconds(0.0);
    const Seconds device = pass.compute + pass.communication();
    if (device > Seconds(0.0)) segment.host = pass.host * (segment.total() / device);
    return segment;
  };

  std::vector<Bucket> parts;
  Bucket open;
  LayerCost cost;
  const auto close = [&] {
    open.backward = segment_of(std::exchange(cost, {}));
    open.collectives = by_tensor ? 1.0 : std::max(1.0, std::ceil(open.size / sync.bucket - 1e-9));
    parts.push_back(std::exchange(open, {}));
  };
  const auto take = [&](const LayerPart& part, double elements, double in_experts, std::vector<WeightMatrix> matrices) {
    cost += part.layer->cost * (part.to - part.from);
    open.size += gradient_ * elements;
    add_gradients(elements, in_experts, std::move(matrices), open);
    open.layers.push_back(part);
    const bool first = parts.empty() && sync.first_bucket.value() > 0.0;
    if (open.size >= (first ? sync.first_bucket : sync.bucket)) close();
  };
  for (auto priced = layers.rbegin(); priced != layers.rend(); ++priced) {
    const Layer& layer = *priced->layer;
    for (int i = 0; i < priced->count; ++i) {
      if (by_tensor) {
        take_tensors(*priced, take);
      } else {
        take({&*priced}, layer.parameters, layer.expert_parameters,
             counts_matrices ? layer.matrices : std::vector<WeightMatrix>());
      }
    }
  }
  if (open.size.value() > 0.0 || parts.empty()) {
    close();
  } else {
    open.backward = segment_of(cost);
    parts.back() += open;
  }
  return parts;
}

/// Kernels that a framework launches one by one: the device's time or the host's, whichever is longer.
Seconds GradientSync::kernel_time(const std::vector<Operator>& ops) const {
  return ops.empty() ? Seconds(0.0) : std::max(pricer_.kernels(ops), pricer_.dispatch(ops));
}

/// Some trainers copy each gradient into the bucket that is sent (DistributedDataParallel without bucket views,
/// Horovod's fusion buffer); with others the backward pass writes there.
std::vector<Operator> GradientSync::copies_into_bucket(Bytes gradients) const {
  if (!scenario_.plan.sync.separate_bucket_buffers) return {};
  const Streaming copy{StreamingKind::elementwise, gradients, gradients, Flops(0.0), false};
  return {{"copy into bucket", copy, Precision::fp32, 1}};
}

/// Operators whose middle lies in the part.
std::vector<Operator> GradientSync::operators_of(const GradientSync::LayerPart& part) const {
  std::vector<Operator> ops = pricer_.backward_operators(*part.layer->layer);
  std::vector<Seconds> times;
  Seconds total;
  for (const Operator& op : ops) {
    times.push_back(pricer_.kernels({op}));
    total += times.back();
  }
  std::vector<Operator> within;
  Seconds before;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Seconds middle = before + times[i] * 0.5;
    before += times[i];
    if (middle >= total * part.from && (middle < total * part.to || part.to >= 1.0)) {
      within.push_back(std::move(ops[i]));
    }
  }
  return within;
}

int GradientSync::transfer_of(int stage, GroupKind kind, CollectiveOperation operation, Bytes size, double pieces,
                              const char* name) const {
  CollectiveCall call;
  call.operation = operation;
  const Sync& sync = scenario_.plan.sync;
  call.algorithm = sync.algorithm;  // check_sync: one that has a schedule for the operation
  call.levels = sync.levels;
  call.servers = sync.servers;
  call.placement = sync.placement;
  call.size = size / pieces;
  call.rotating_root = operation == CollectiveOperation::broadcast;  // every owner sends its own weights
  RecipePointer recipe;
  if (pricer_.keeps_recipes()) {
    recipe =
        recipe_of(collective_work(operation, call.size, scenario_.plan.data * scenario_.plan.context, call.algorithm,
                                  call.servers, call.placement, static_cast<int>(std::lround(pieces))));
  }
  // If two stages hold the same parameters, the first one stands for both.
  const std::optional<int> mirror = ChunkPlacement(scenario_.plan).mirror(stage);
  return transfers_.collective(std::min(stage, mirror.value_or(stage)), kind, call, pieces, name, std::move(recipe));
}

/// Fills in the bucket's transfers and kernels.
void GradientSync::synchronise(const Place& place, const ReplicaGroup& group, const GradientSet& gradients,
                               double collectives, GradientBucket& bucket) const {
  if (group.replicas < 2 || !(gradients.elements > 0.0)) return;
  // A ServerGraph has the messages to servers; a replay sends them as collectives.
  if (servers_update(scenario_.plan) && !pricer_.keeps_recipes()) return;
  const Sync& sync = scenario_.plan.sync;
  const bool sharded = scenario_.plan.zero >= 1 && scenario_.plan.zero_by == ZeroBy::scatter;
  const CompressionWork work = compression_work(sync.compression, gradients, sync.gradient_precision, group.replicas);
  const auto add = [&](GroupKind kind, CollectiveOperation operation, Bytes size, const char* name,
                       const std::vector<Operator>& kernels) {
    const int index = transfer_of(place.stage, kind, operation, size, collectives, name);
    const Seconds time = kernel_time(kernels) / place.speed;
    bucket.stages.push_back({time, index, pricer_.recipe(kernels)});
  };
  for (const CompressedMessage& message : work.messages) {
    const bool last = &message == &work.messages.back();
    if (message.gathered) {
      add(group.all, CollectiveOperation::all_gather, message.size * static_cast<double>(group.replicas),
          "gradient all-gather", message.kernels);
    } else if (!sharded || !last) {
      add(group.all, CollectiveOperation::all_reduce, message.size, "gradient all-reduce", message.kernels);
    } else {
      const bool divides = group.in_shards > 1;
      if (divides) {
        add(group.shards, CollectiveOperation::reduce_scatter, message.size, "gradient reduce-scatter",
            message.kernels);
      }
      if (group.of_shard > 1) {
        add(group.copies, CollectiveOperation::all_reduce, message.size / group.in_shards, "gradient all-reduce",
            divides ? std::vector<Operator>{} : message.kernels);
      }
    }
  }
  if (const auto& processor = scenario_.cluster.node.gpu.processor) {
    for (const CompressedMessage& message : work.messages) {
      if (!(message.size < gradient_ * gradients.elements)) continue;
      bucket.after += narrow_sums(*processor, message.size, group.replicas) * collectives / place.speed;
    }
  }
  // Under ZeRO each rank restores the part that it owns.
  bucket.after += kernel_time(work.restore) / place.speed / (sharded ? static_cast<double>(group.in_shards) : 1.0);
  bucket.after_recipe = joined(bucket.after_recipe, pricer_.recipe(work.restore));
}

void GradientSync::add_buckets(const Place& place, const std::vector<PricedLayer>& layers, Step::Chunk& chunk) {
  std::vector<Bucket> parts = parts_of(layers);
  const bool overlap = scenario_.plan.sync.overlap;
  const auto merged = [](std::size_t count) { return (count + buckets_for_one - 1) / buckets_for_one; };
  OverlapCost previous(transfers_, place.rank_class);  // transfers of the bucket before
  Seconds previous_kernels;                            // its kernels beside the backward pass
  for (std::size_t first = 0; first < parts.size();) {
    const std::size_t end = first + merged(parts.size() - first);
    GradientBucket bucket;
    PassCost& backward = bucket.backward;
    Bucket together = std::move(parts[first++]);
    for (; first < end; ++first) together += parts[first];
    backward.time = together.backward;
    bucket.gradients = together.size;
    std::vector<Operator> ops;
    for (const GradientSync::LayerPart& part : together.layers) {
      PassCost::Part& pass = backward.parts.emplace_back(part.layer->part(true, 1));
      pass.from = part.from;
      pass.to = part.to;
      if (!pricer_.keeps_recipes()) continue;
      const std::vector<Operator> within = operators_of(part);
      ops.insert(ops.end(), within.begin(), within.end());
    }
    backward.recipe = pricer_.recipe(ops);
    if (overlap) {
      backward.time.compute += previous.cost(backward.time.compute);
      backward.time.compute += previous_kernels;
    }
    if (replica_group_.replicas > 1 && bucket.gradients.value() > 0.0) {
      const std::vector<Operator> copies = copies_into_bucket(bucket.gradients);
      backward.time.compute += pricer_.kernels(copies) / place.speed;
      backward.recipe = joined(backward.recipe, pricer_.recipe(copies));
      synchronise(place, replica_group_, together.gradients, together.collectives, bucket);
      synchronise(place, expert_replica_group_, together.experts, together.collectives, bucket);
      if (overlap && !bucket.stages.empty()) {  // the first kernels are on the stream of the backward pass
        GradientBucket::Stage& begin = bucket.stages.front();
        backward.time.compute += std::exchange(begin.kernels, Seconds(0.0));
        backward.recipe = joined(backward.recipe, std::exchange(begin.recipe, nullptr));
      }
      previous = OverlapCost(transfers_, place.rank_class);
      previous_kernels = bucket.after;
      for (const GradientBucket::Stage& stage : bucket.stages) {
        previous.add(stage.transfer);
        if (&stage != &bucket.stages.front()) previous_kernels += stage.kernels;
      }
    }
    chunk.buckets.push_back(std::move(bucket));
  }
}

/// FSDP keeps a unit's weights in one flat buffer. The backward pass concatenates the gradients of its views and
/// divides the result by the number of ranks, before it is scattered (torch.distributed.fsdp, _post_backward_hook).
Seconds GradientSync::concat_time(double parameters) const {
  if (!scenario_.plan.sync.separate_bucket_buffers) return Seconds(0.0);
  const Bytes pass = weight_ * parameters;
  const Streaming copy{StreamingKind::elementwise, pass, pass, Flops(0.0), false};
  return pricer_.kernels(
      {{"gradient concatenation", copy, Precision::bf16, 1}, {"gradient division", copy, Precision::bf16, 1}});
}

/// Fills in what moves a unit's gradients; the time of the kernels around it.
Seconds GradientSync::scatter_unit(const Place& place, double parameters, ShardedUnit& unit) const {
  if (!(parameters > 0.0) || replica_group_.replicas < 2) return Seconds(0.0);
  const Sync& sync = scenario_.plan.sync;
  const Bytes size = cast_bytes(sync.compression, sync.gradient_precision) * parameters;
  using enum CollectiveOperation;
  if (replica_group_.in_shards > 1) {
    unit.scatter = transfer_of(place.stage, replica_group_.shards, reduce_scatter, size, 1, "gradient reduce-scatter");
  }
  if (replica_group_.of_shard > 1) {
    const Bytes shard = size / replica_group_.in_shards;
    unit.reduce = transfer_of(place.stage, replica_group_.copies, all_reduce, shard, 1, "gradient all-reduce");
  }
  const CompressionWork work =
      compression_work(sync.compression, {parameters, {}}, sync.gradient_precision, replica_group_.replicas);
  Seconds casts;
  for (const CompressedMessage& message : work.messages) casts += kernel_time(message.kernels) / place.speed;
  const Seconds restore = kernel_time(work.restore) / static_cast<double>(replica_group_.in_shards);
  return casts + (restore + concat_time(parameters)) / place.speed;
}

ShardedUnit GradientSync::sharded_unit(const Place& place, const PricedLayer& priced, double parameters,
                                       double frozen) const {
  ShardedUnit unit;
  unit.forward = {priced.cost.forward.time_breakdown(), {priced.part(false, 1)}};
  unit.backward = {priced.cost.whole_backward().time_breakdown(), {priced.part(true, 1)}};
  if (parameters + frozen > 0.0 && replica_group_.in_shards > 1) {
    unit.gather = transfer_of(place.stage, replica_group_.shards, CollectiveOperation::all_gather,
                              gathered_weight_ * (parameters + frozen), 1, "weight all-gather");
    const bool again = !priced.layer->backward.empty() && scenario_.plan.reshard_after_forward;
    if (priced.layer->splittable && again) unit.gather_backward = unit.gather;
  }
  const Seconds casts = scatter_unit(place, parameters, unit);
  const auto slow_down = [&](Seconds& kernels, std::initializer_list<int> transfers) {
    OverlapCost beside(transfers_, place.rank_class);
    for (const int transfer : transfers) beside.add(transfer);
    kernels += beside.cost(kernels);
  };
  if (scenario_.plan.sync.overlap) {
    slow_down(unit.forward.time.compute, {unit.gather});
    slow_down(unit.backward.time.compute, {unit.gather_backward, unit.scatter, unit.reduce});
  }
  unit.backward.time.compute += casts;
  return unit;
}

void GradientSync::add_sharded_units(const Place& place, const std::vector<PricedLayer>& layers, Step::Chunk& chunk) {
  // Frozen weights are gathered like the others; gradients are scattered of the trained ones alone.
  double root_parameters = 0.0, root_frozen = 0.0;
  for (const PricedLayer& priced : layers) {
    if (priced.layer->splittable) continue;
    root_parameters += priced.layer->parameters;
    root_frozen += priced.layer->held() - priced.layer->parameters;
  }
  for (const PricedLayer& priced : layers) {
    const Layer& layer = *priced.layer;
    const double parameters = layer.splittable ? layer.parameters : std::exchange(root_parameters, 0.0);
    const double frozen = layer.splittable ? layer.held() - layer.parameters : std::exchange(root_frozen, 0.0);
    ShardedUnit unit = sharded_unit(place, priced, parameters, frozen);
    chunk.units.insert(chunk.units.end(), at_index(priced.count), unit);
  }
}

}  // namespace foretrain

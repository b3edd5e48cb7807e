#include "model/graph/gradient_sync.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <string>

#include "model/base/error.hpp"
#include "model/collectives/contention.hpp"

namespace foretrain {

namespace {

/// Bytes that one gradient takes on the wire.
Bytes gradient_bytes(const Sync& sync) {
  const Bytes plain = bytes_per_element(sync.gradient_precision);
  return sync.compression == Sync::Compression::fp16 ? std::min(plain, Bytes(2.0)) : plain;
}

}  // namespace

GradientSync::GradientSync(const Scenario& scenario, const Topology& topology, Step& step)
    : scenario_(scenario),
      topology_(topology),
      step_(step),
      layout_(scenario.plan),
      replicas_(scenario.plan.data * scenario.plan.context),
      weight_(bytes_per_element(storage_precision(std::get<TrainWorkload>(scenario.workload).precision))),
      gradient_(gradient_bytes(scenario.plan.sync)) {}

int GradientSync::transfer(int stage, CollectiveOperation operation, Bytes size, int pieces, const char* name) {
  const auto key = std::make_tuple(stage, operation, size.value(), pieces);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;

  CollectiveCall call;
  call.operation = operation;
  const Sync& sync = scenario_.plan.sync;
  call.algorithm = operation == CollectiveOperation::all_reduce ? sync.algorithm : SyncAlgorithm::automatic;
  call.servers = sync.servers;
  call.placement = sync.placement;
  call.size = size / static_cast<double>(pieces);
  call.groups = layout_.gradient_groups(stage);
  SharedTransfer shared;
  shared.name = name;
  shared.lowered = lower(call, topology_, scenario_.calibration);
  for (LoweredPhase& phase : shared.lowered.phases) phase.repeat *= pieces;
  shared.isolated = isolated_time(shared.lowered, topology_, scenario_.background);
  const int index = static_cast<int>(step_.transfers.size());
  step_.transfers.push_back(std::move(shared));
  known_.emplace(key, index);
  return index;
}

void GradientSync::add_buckets(int stage, const std::vector<std::pair<const Layer*, LayerCost>>& layers,
                               ModelChunk& chunk) {
  struct Ready {
    Segment backward;
    Bytes gradients;
  };
  std::vector<Ready> parts;
  const Bytes limit = scenario_.plan.sync.bucket;
  Ready open;
  LayerCost cost;
  for (const auto& [layer, price] : std::views::reverse(layers)) {
    cost += price;
    open.gradients += gradient_ * layer->parameters;
    if (open.gradients >= limit) {
      open.backward = cost.backward();
      parts.push_back(open);
      open = {};
      cost = {};
    }
  }
  open.backward = cost.backward();
  if (open.gradients.value() > 0.0 || parts.empty()) {
    parts.push_back(open);
  } else {
    parts.back().backward += open.backward;
  }

  const auto merge = static_cast<std::size_t>((static_cast<int>(parts.size()) + most_buckets - 1) / most_buckets);
  const bool sharded = scenario_.plan.zero >= 1;
  const auto operation = sharded ? CollectiveOperation::reduce_scatter : CollectiveOperation::all_reduce;
  const char* name = sharded ? "gradient reduce-scatter" : "gradient all-reduce";
  const double slowdown = scenario_.calibration.collective.overlap_slowdown;
  Seconds previous;
  for (std::size_t first = 0; first < parts.size(); first += merge) {
    GradientBucket bucket;
    int pieces = 0;
    for (std::size_t i = first; i < std::min(first + merge, parts.size()); ++i) {
      bucket.backward += parts[i].backward;
      bucket.gradients += parts[i].gradients;
      pieces += std::max(1, static_cast<int>(std::ceil(parts[i].gradients / limit - 1e-9)));
    }
    if (scenario_.plan.sync.overlap) {
      bucket.backward.compute += std::min(previous, bucket.backward.compute) * slowdown;
    }
    if (replicas_ > 1 && bucket.gradients.value() > 0.0) {
      bucket.transfer = transfer(stage, operation, bucket.gradients, pieces, name);
      previous = step_.transfers[static_cast<std::size_t>(bucket.transfer)].isolated;
    }
    chunk.buckets.push_back(bucket);
  }
}

void GradientSync::add_sharded_units(int stage, const std::vector<std::pair<const Layer*, LayerCost>>& layers,
                                     ModelChunk& chunk) {
  double root_parameters = 0.0;
  for (const auto& [layer, cost] : layers) {
    if (!layer->splittable) root_parameters += layer->parameters;
  }
  const double slowdown = scenario_.calibration.collective.overlap_slowdown;
  const auto time = [&](int index) {
    return index < 0 ? Seconds(0.0) : step_.transfers[static_cast<std::size_t>(index)].isolated;
  };
  constexpr auto gather = CollectiveOperation::all_gather;
  constexpr auto scatter = CollectiveOperation::reduce_scatter;
  bool root_pending = true;
  for (const auto& [layer, cost] : layers) {
    ShardedUnit unit;
    unit.forward = cost.forward();
    unit.backward = cost.backward();
    const bool root = !layer->splittable;
    const double parameters = root ? (root_pending ? root_parameters : 0.0) : layer->parameters;
    if (root) root_pending = false;
    if (parameters > 0.0 && replicas_ > 1) {
      unit.gather = transfer(stage, gather, weight_ * parameters, 1, "weight all-gather");
      if (!root) unit.gather_backward = unit.gather;
      unit.scatter = transfer(stage, scatter, gradient_ * parameters, 1, "gradient reduce-scatter");
    }
    unit.forward.compute += std::min(time(unit.gather), unit.forward.compute) * slowdown;
    unit.backward.compute +=
        std::min(time(unit.gather_backward) + time(unit.scatter), unit.backward.compute) * slowdown;
    chunk.units.push_back(unit);
  }
}

int GradientSync::parameter_gather(int stage, double parameters) {
  return transfer(stage, CollectiveOperation::all_gather, weight_ * parameters, 1, "weight all-gather");
}

}  // namespace foretrain

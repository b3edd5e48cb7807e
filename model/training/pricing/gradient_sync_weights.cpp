// All-gathers of the weights that ZeRO-1 and 2 updated.
#include <algorithm>

#include "model/parallelism/stages.hpp"
#include "model/training/pricing/gradient_sync.hpp"

namespace foretrain {

namespace {

/// Trainable tensors: matrices, and a vector beside each (biases, scales of norms).
double tensors_in(const GradientSet& gradients) {
  double matrices = 0.0;
  for (const WeightMatrix& matrix : gradients.matrices) matrices += static_cast<double>(matrix.count);
  return std::max(2.0 * matrices, 1.0);
}

}  // namespace

/// The messages in which `weights`, a part of the chunk's, come back: `buckets` where they are the gradients'. Owners
/// hold whole tensors, so that there are no more of them than tensors (InternEvo, _partition_param_list).
double GradientSync::messages_of(const GradientSet& weights, const GradientSet& of_chunk, double buckets,
                                 const ReplicaGroup& group) const {
  switch (scenario_.plan.sync.gather) {
    case Sync::Gather::buckets:
      return buckets;
    case Sync::Gather::whole:
      return 1.0;
    case Sync::Gather::owners: {
      const double owners = static_cast<double>(group.in_shards) / ChunkPlacement(scenario_.plan).chunks();
      return std::max(1.0, std::min(owners, tensors_in(of_chunk)) * (weights.elements / of_chunk.elements));
    }
    case Sync::Gather::tensors:
      return tensors_in(weights);
  }
  return buckets;
}

void GradientSync::add_gathers(const Place& place, const std::vector<PricedLayer>& layers, Step::Chunk& chunk) {
  if (replica_group_.in_shards < 2) return;
  const Sync& sync = scenario_.plan.sync;
  const std::vector<Bucket> parts = parts_of(layers);
  Bucket all;
  for (const Bucket& part : parts) all += part;
  const bool apart = sync.gather_overlap && sync.gather != Sync::Gather::whole;
  for (std::size_t left = parts.size(); left > 0;) {  // from the last on
    const std::size_t come = parts.size() - left;
    const std::size_t next = apart ? std::min(1 + come / gathers_before_one_more, left) : left;
    Bucket together;
    for (std::size_t part = left - next; part < left; ++part) together += parts[part];
    left -= next;
    WeightGather& gather = chunk.gathers.emplace_back();
    const auto add = [&](const ReplicaGroup& group, const GradientSet& weights, const GradientSet& of_chunk) {
      if (group.in_shards < 2 || !(weights.elements > 0.0)) return;
      const auto operation = sync.has_owners() ? CollectiveOperation::broadcast : CollectiveOperation::all_gather;
      gather.transfers.push_back(transfer_of(place.stage, group.shards, operation, gathered_weight_ * weights.elements,
                                             messages_of(weights, of_chunk, together.collectives, group),
                                             sync.has_owners() ? "weight broadcast" : "weight all-gather"));
    };
    add(replica_group_, together.gradients, all.gradients);
    add(expert_replica_group_, together.experts, all.experts);
    if (sync.gather_overlap) set_forward(together.layers, chunk.time(PassKind::forward), gather.forward);
  }
  // Each part of the pass runs beside what the next one waits for.
  for (std::size_t next = 1; sync.gather_overlap && next < chunk.gathers.size(); ++next) {
    OverlapCost beside(transfers_, place.rank_class);
    for (const int transfer : chunk.gathers[next].transfers) beside.add(transfer);
    Seconds& kernels = chunk.gathers[next - 1].forward.time.compute;
    kernels += beside.cost(kernels);
  }
}

/// The forward pass of these parts of layers, which are named by their backward pass, the last first; `whole`: the
/// chunk's.
void GradientSync::set_forward(const std::vector<LayerPart>& parts, const TimeBreakdown& whole, PassCost& forward) {
  LayerPassCost cost;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    cost += part->layer->cost.forward * (part->to - part->from);
    PassCost::Part& pass = forward.parts.emplace_back(part->layer->part(false, 1));
    pass.from = 1.0 - part->to;
    pass.to = 1.0 - part->from;
  }
  TimeBreakdown& time = forward.time;
  time = cost.time_breakdown();
  const Seconds device = whole.compute + whole.communication();
  const Seconds own = time.compute + time.communication();
  time.host = device > Seconds(0.0) ? whole.host * (own / device) : Seconds(0.0);
}

}  // namespace foretrain

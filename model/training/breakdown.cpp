#include "model/training/breakdown.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/number.hpp"

namespace foretrain {

namespace {

/// The lane with the most work of its own; the step is seen from there.
std::size_t busiest_lane(const Step& step) {
  std::size_t busiest = 0;
  Seconds most(-1.0);
  for (std::size_t s = 0; s < step.lanes.size(); ++s) {
    Seconds work;
    for (const Step::Chunk& chunk : step.lanes[s].chunks) work += chunk.forward.total() + chunk.backward.total();
    if (work > most) {
      most = work;
      busiest = s;
    }
  }
  return busiest;
}

/// Compression's kernels on a stream of their own; those on the stream of the backward pass count as compute.
Seconds kernels_beside(const GradientBucket& bucket) {
  Seconds kernels = bucket.before + bucket.after;
  for (const GradientBucket::Stage& part : bucket.further) kernels += part.kernels;
  return kernels;
}

/// The backward pass of the last micro-batch: with overlap it runs bucket by bucket, slowed by the collectives beside
/// it.
Segment last_backward_of(const Step& step, const Step::Chunk& chunk) {
  if (!step.overlap) return chunk.backward;
  Segment sum;
  for (const GradientBucket& bucket : chunk.buckets) sum += bucket.backward;
  return sum;
}

/// Forward and backward work of one stage over the whole step.
Segment passes_of(const Step& step, std::size_t s) {
  const auto passes = static_cast<double>(step.micro_batches);
  Segment work;
  for (const Step::Chunk& chunk : step.lanes[s].chunks) {
    if (chunk.units.empty()) {
      work += chunk.forward * passes;
      const Segment last = last_backward_of(step, chunk);
      work += (step.every_micro_batch ? last : chunk.backward) * (passes - 1.0);
      work += last;
    }
    for (const ShardedUnit& unit : chunk.units) {
      work += unit.forward * passes;
      work += unit.backward * passes;
    }
  }
  return work;
}

}  // namespace

Seconds beyond_rounding(Seconds difference, Seconds whole) {
  return std::abs(difference.value()) > 1e-9 * whole.value() ? difference : Seconds(0.0);
}

Seconds step_time(const Step& step, const StepGraph::Times& times, std::optional<Seconds> loader) {
  const Seconds own = times.end + step.once_per_step + step.loader_serial;
  // A pipeline that keeps pace with the step has the step's own interval.
  return own + std::max(beyond_rounding(loader.value_or(step.loader_interval) - own, own), Seconds(0.0));
}

Breakdown breakdown_of(const Step& step, const StepGraph::Times& times, std::optional<Seconds> loader) {
  const std::size_t s = busiest_lane(step);
  const Step::Lane& lane = step.lanes[s];
  const Segment passes = passes_of(step, s);
  Breakdown breakdown;
  breakdown.compute = passes.compute + step.loader_device;
  if (step.stage_count() > 1) {
    const Seconds idle = std::max(times.backward_done - passes.total(), Seconds(0.0));
    breakdown.pipeline_bubble = std::clamp(times.without_transfers - passes.total(), Seconds(0.0), idle);
  }
  breakdown.host_overhead = passes.host + lane.optimizer.host + step.once_per_step;
  breakdown.optimizer = lane.optimizer.compute;
  const Seconds whole = step_time(step, times, loader);
  const Seconds own = times.end + step.once_per_step + step.loader_serial;
  breakdown.data_stall = step.loader_serial - step.loader_device + (whole - own);
  const Seconds rest = beyond_rounding(whole - breakdown.total(), whole);
  breakdown.exposed_communication = std::max(rest, Seconds(0.0));
  // Dispatch and communication can overlap in ways that the parts above count twice; compute absorbs the difference.
  breakdown.compute += std::min(rest, Seconds(0.0));
  return breakdown;
}

std::map<std::string, CommunicationTime> communication_of(const Step& step, const Breakdown& breakdown) {
  const std::size_t s = busiest_lane(step);
  const Step::Lane& lane = step.lanes[s];
  std::map<std::string, CommunicationTime> table;
  const auto add = [&](int index, double times) {
    if (index < 0) return;
    const Step::Transfer& transfer = step.transfers[static_cast<std::size_t>(index)];
    for (const Step::Transfer::Part& part : transfer.parts) {
      if (std::ranges::binary_search(part.lanes, static_cast<int>(s))) {
        table[transfer.name].total += part.uncontended * times;
      }
    }
  };
  const auto passes = static_cast<double>(step.micro_batches);
  for (const Step::Chunk& chunk : lane.chunks) {
    const double times = step.every_micro_batch ? passes : 1.0;
    for (const GradientBucket& bucket : chunk.buckets) {
      add(bucket.transfer, times);
      for (const GradientBucket::Stage& part : bucket.further) add(part.transfer, times);
      const Seconds kernels = kernels_beside(bucket);
      if (kernels.value() > 0.0) table["compression kernels"].total += kernels * times;
    }
    for (const ShardedUnit& unit : chunk.units) {
      add(unit.gather, passes);
      add(unit.gather_backward, passes);
      add(unit.scatter, passes);
    }
  }
  for (const int gather : lane.parameter_gathers) add(gather, 1.0);
  if (!step.activations.empty()) {
    const std::size_t neighbour = std::min(at_index(lane.stage), step.activations.size() - 1);
    add(step.activations[neighbour], passes * step.interleave);
    add(step.activation_gradients[neighbour], passes * step.interleave);
  }

  const Seconds in_layers = passes_of(step, s).communication;
  Seconds hidden_or_not;
  for (const auto& [name, time] : table) hidden_or_not += time.total;
  const Seconds waiting = std::min(step.slowest_replica, breakdown.exposed_communication);
  const Seconds exposed = std::max(breakdown.exposed_communication - in_layers - waiting, Seconds(0.0));
  for (auto& [name, time] : table) {
    if (hidden_or_not.value() > 0.0) time.exposed = std::min(time.total, exposed * (time.total / hidden_or_not));
  }
  if (waiting.value() > 0.0) table["waiting for the slowest replica"] = {waiting, waiting};
  if (in_layers.value() > 0.0) table["collectives inside layers"] = {in_layers, in_layers};
  return table;
}

}  // namespace foretrain

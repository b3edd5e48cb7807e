#include "model/planning/plan_bound.hpp"

#include <algorithm>
#include <array>
#include <ranges>

#include "model/base/number.hpp"
#include "model/parallelism/pipeline_order.hpp"
#include "model/training/graph/pieces.hpp"

namespace foretrain {

namespace {

/// What the blocks of a step take one of its lanes at least.
class LaneBound {
 public:
  LaneBound(const Step& step, std::size_t lane)
      : cut_(step.lanes[lane].cut != Step::Lane::Cut::none), transfers_(step.transfers.size()) {
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      for (const Step::Transfer::Part& part : step.transfers[i].parts) {
        if (std::ranges::binary_search(part.lanes, static_cast<int>(lane))) {
          transfers_[i] = std::max(transfers_[i], part.uncontended);
        }
      }
    }
    for (const Step::Chunk& chunk : step.lanes[lane].chunks) {
      PerPass<Seconds>& times = passes_.emplace_back();
      for (const PassKind kind : pass_kinds) {
        if (chunk.units.empty()) times[kind] = least(chunk.passes[kind]);
        const bool backward = PipelinePass{kind}.backward();
        for (const ShardedUnit& unit : chunk.units) times[kind] += least(backward ? unit.backward : unit.forward);
      }
    }
  }

  /// The passes of its chunks, each by itself.
  [[nodiscard]] const std::vector<PerPass<Seconds>>& passes() const { return passes_; }
  /// Transfers, one after the other.
  [[nodiscard]] Seconds sum(const auto& transfers) const {
    Seconds time;
    for (const int index : transfers) time += index < 0 ? Seconds(0.0) : transfers_[at_index(index)];
    return time;
  }
  [[nodiscard]] Seconds sent(const GradientBucket& bucket) const {
    return sum(bucket.stages | std::views::transform(&GradientBucket::Stage::transfer));
  }
  /// What a chunk's sharded layers send in a micro-batch's passes: weights there, weights back and gradients.
  [[nodiscard]] Seconds weights(const Step::Chunk& chunk) const {
    Seconds time;
    for (const ShardedUnit& unit : chunk.units)
      time += sum(std::array{unit.gather, unit.gather_backward, unit.scatter});
    return time;
  }

 private:
  /// Whole, or cut into pieces whose collectives are carried out beside or between them.
  [[nodiscard]] Seconds least(const Stretch& stretch) const {
    const std::vector<Piece> pieces = cut_ ? pieces_of(stretch) : std::vector<Piece>();
    if (pieces.empty()) return stretch.time.total();
    Seconds time;
    for (const Piece& piece : pieces) {
      const Seconds moving = sum(piece.transfers);
      time += piece.beside ? std::max(piece.work, moving) : piece.work + moving;
    }
    return std::min(time, stretch.time.total());
  }

  bool cut_;
  std::vector<Seconds> transfers_;  ///< what each takes this lane
  std::vector<PerPass<Seconds>> passes_;
};

/// By position in the model: the least time in which a micro-batch arrives there, and in which its gradients leave.
struct Paths {
  std::vector<Seconds> to, from;
};

Paths paths_of(const ChunkPlacement& placement, int stages, const PassTimes& times) {
  const std::size_t positions = times.passes.size();
  std::vector<int> stage_of(positions, 0);
  for (int stage = 0; stage < stages; ++stage) {
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      if (!placement.reversed(chunk) || !placement.mirror(stage))
        stage_of[at_index(placement.position(stage, chunk))] = stage;
    }
  }
  Paths paths{std::vector<Seconds>(positions), std::vector<Seconds>(positions)};
  for (std::size_t at = 1; at < positions; ++at) {
    const Seconds hop = stage_of[at] == stage_of[at - 1] ? Seconds(0.0) : times.hop;
    paths.to[at] = paths.to[at - 1] + times.passes[at - 1][PassKind::forward] + hop;
    paths.from[at] = paths.from[at - 1] + times.passes[at - 1][PassKind::backward] + hop;
  }
  return paths;
}

std::vector<LaneBound> lanes_of(const Step& step) {
  std::vector<LaneBound> lanes;
  lanes.reserve(step.lanes.size());
  for (std::size_t lane = 0; lane < step.lanes.size(); ++lane) lanes.emplace_back(step, lane);
  return lanes;
}

/// The least message between stages.
Seconds hop_of(const Step& step) {
  Seconds least = Seconds::infinity();
  for (const std::vector<int>* hops : {&step.activations, &step.activation_gradients}) {
    for (const int hop : *hops) {
      if (hop < 0) continue;
      for (const Step::Transfer::Part& part : step.transfers[at_index(hop)].parts) {
        least = std::min(least, part.uncontended);
      }
    }
  }
  return least == Seconds::infinity() ? Seconds(0.0) : least;
}

/// The least of all lanes of a stage, by position in the model.
PassTimes pass_times_of(const Step& step, const std::vector<LaneBound>& lanes) {
  const ChunkPlacement placement = step.placement();
  PassTimes times;
  PerPass<Seconds> unknown;
  unknown.values.fill(Seconds::infinity());
  times.updates.assign(at_index(step.stage_count()), Seconds::infinity());
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const Step::Lane& lane = step.lanes[i];
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const std::size_t at = at_index(placement.position(lane.stage, chunk));
      if (at >= times.passes.size()) {
        times.passes.resize(at + 1, unknown);
        times.weights.resize(at + 1, Seconds::infinity());
      }
      const PerPass<Seconds>& own = lanes[i].passes()[at_index(chunk)];
      for (const PassKind kind : pass_kinds) times.passes[at][kind] = std::min(times.passes[at][kind], own[kind]);
      times.weights[at] = std::min(times.weights[at], lanes[i].weights(lane.chunks[at_index(chunk)]));
    }
    Seconds& update = times.updates[at_index(lane.stage)];
    update = std::min(update, lane.optimizer.total());
  }
  times.hop = hop_of(step);
  return times;
}

}  // namespace

PassTimes pass_times(const Step& step) {
  PassTimes times = pass_times_of(step, lanes_of(step));
  for (std::size_t at = 0; step.schedule == PipelineSchedule::dualpipe && at < times.passes.size(); ++at) {
    const PerPass<Seconds>& other = times.passes[times.passes.size() - 1 - at];  // of the same stage
    Seconds& pair = times.passes[at][PassKind::paired];
    pair = std::min(pair, times.passes[at][PassKind::forward] + other[PassKind::backward]);
  }
  return times;
}

StepEnds ends_of(const Step& step) {
  StepEnds ends;
  ends.overlap = step.overlap;
  ends.every_micro_batch = step.every_micro_batch;
  ends.stages.resize(at_index(step.stage_count()));
  for (std::size_t lane = 0; lane < step.lanes.size(); ++lane) {
    const LaneBound times(step, lane);
    const Step::Lane& own = step.lanes[lane];
    StepEnds::Stage here;
    for (const Step::Chunk& chunk : own.chunks) {
      Seconds& gradients = here.gradients.emplace_back();
      for (const GradientBucket& bucket : chunk.buckets) gradients += times.sent(bucket);
      here.weights += times.weights(chunk);
      Seconds all;
      for (const WeightGather& gather : chunk.gathers) all += times.sum(gather.transfers);
      const Seconds first = chunk.gathers.empty() ? all : times.sum(chunk.gathers.front().transfers);
      here.first_gather = std::min(here.first_gather, first);
      here.first_gathers = std::min(here.first_gathers, all);
      if (!step.gather_overlap) here.gathered += all;
    }
    StepEnds::Stage& stage = ends.stages[at_index(own.stage)];
    stage.gradients.resize(here.gradients.size());
    for (std::size_t chunk = 0; chunk < here.gradients.size(); ++chunk) {
      stage.gradients[chunk] = std::max(stage.gradients[chunk], here.gradients[chunk]);
    }
    stage.weights = std::max(stage.weights, here.weights);
    stage.gathered = std::max(stage.gathered, here.gathered);
    stage.first_gather = std::min(stage.first_gather, step.gather_overlap ? here.first_gather : Seconds(0.0));
    stage.first_gathers = std::min(stage.first_gathers, step.gather_overlap ? here.first_gathers : Seconds(0.0));
  }
  ends.after = step.gradient_norm + step.once_per_step + step.loader_serial;
  return ends;
}

namespace {

Seconds sum_of(const std::vector<Seconds>& times) {
  Seconds sum;
  for (const Seconds time : times) sum += time;
  return sum;
}

/// How many forward passes of one of a stage's chunks run in pairs; all of them where that would be too much to count.
double pairs_of(const PipelineShape& shape, int stage, int chunk) {
  const auto orders = walked_orders(shape);
  if (orders == nullptr) return 0.5 * shape.micro_batches;
  return static_cast<double>(std::ranges::count_if((*orders)[at_index(stage)], [&](const PipelinePass& pass) {
    return pass.kind == PassKind::paired && pass.chunk == chunk;
  }));
}

}  // namespace

PipelineWalk walk_of(const PipelineShape& shape, const PassTimes& times) {
  const auto orders = walked_orders(shape);
  if (orders == nullptr) return {};
  const ChunkPlacement placement(shape.schedule, shape.stages, shape.interleave);
  std::vector<std::vector<PerPass<Seconds>>> passes(at_index(shape.stages));
  for (int stage = 0; stage < shape.stages; ++stage) {
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      passes[at_index(stage)].push_back(times.passes[at_index(placement.position(stage, chunk))]);
    }
  }
  return walk_pipeline(placement, *orders, shape.micro_batches, passes, times.hop);
}

namespace {

/// When a stage's gradients are, which chunk by chunk take so long; `worked`: the end of its passes, without a walk.
Seconds synchronised(const std::vector<Seconds>& gradients, bool overlap, Seconds worked,
                     const PipelineWalk::Stage* walked) {
  if (!overlap) return std::max(worked, walked != nullptr ? walked->end : Seconds(0.0)) + sum_of(gradients);
  Seconds last;
  for (std::size_t chunk = 0; walked != nullptr && chunk < gradients.size(); ++chunk) {
    // A pass may send the gradients that it makes from its beginning, one after the other.
    Seconds sent = walked->last_gradients[chunk];
    for (std::size_t other = 0; other < gradients.size(); ++other) {
      if (walked->last_gradients[other] >= walked->last_gradients[chunk]) sent += gradients[other];
    }
    last = std::max(last, sent);
  }
  return last;
}

}  // namespace

Seconds pipeline_bound(const PipelineShape& shape, const PipelineParts& known) {
  const auto& [times, walk, ends] = known;
  const ChunkPlacement placement(shape.schedule, shape.stages, shape.interleave);
  const Paths paths = paths_of(placement, shape.stages, times);
  const bool parted = splits_backward(shape.schedule), in_pairs = shape.schedule == PipelineSchedule::dualpipe;
  const bool is_walked = walk != nullptr && !walk->stages.empty();
  const double each = shape.micro_batches * (in_pairs ? 0.5 : 1.0);
  Seconds longest, updated, with_update, late_begin = Seconds::infinity();
  for (int stage = 0; stage < shape.stages; ++stage) {
    Seconds work, weights, head = Seconds::infinity(), tail = Seconds::infinity();
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const std::size_t at = at_index(placement.position(stage, chunk));
      const PerPass<Seconds>& passes = times.passes[at];
      const Seconds forward = passes[PassKind::forward], backward = passes[PassKind::backward];
      work += (forward + backward) * each;
      if (in_pairs) {  // hides
        const Seconds other = times.passes[times.passes.size() - 1 - at][PassKind::backward];
        work -= (forward + other - passes[PassKind::paired]) * pairs_of(shape, stage, chunk);
      }
      if (!times.weights.empty()) weights += times.weights[at] * each;
      head = std::min(head, paths.to[at]);
      tail = std::min(tail, paths.from[at]);
    }
    Seconds passes = head + std::max(work + (parted ? Seconds(0.0) : tail), weights);
    Seconds update = times.updates.empty() ? Seconds(0.0) : times.updates[at_index(stage)];
    const PipelineWalk::Stage* walked = is_walked ? &walk->stages[at_index(stage)] : nullptr;
    if (walked != nullptr) passes = std::max(passes, walked->end);
    if (ends != nullptr) {
      const StepEnds::Stage& own = ends->stages[at_index(stage)];
      Seconds sent = own.weights;
      if (ends->every_micro_batch) sent += sum_of(own.gradients);
      passes = std::max(passes, head + sent * static_cast<double>(shape.micro_batches));
      passes = std::max(passes, synchronised(own.gradients, ends->overlap, head + work, walked));
      for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
        const Seconds forward = times.passes[at_index(placement.position(stage, chunk))][PassKind::forward];
        late_begin = std::min(late_begin, std::max(own.first_gather, own.first_gathers - forward));
      }
      update += own.gathered;
    }
    longest = std::max(longest, passes);
    updated = std::max(updated, update);
    with_update = std::max(with_update, passes + update);
  }
  const Seconds passed = std::max(longest + updated, with_update);
  // No stage's first pass ends earlier than that after the moment at which it could.
  return ends != nullptr ? passed + late_begin + ends->after : passed;
}

Seconds step_bound(const Step& step) {
  const PassTimes times = pass_times(step);
  const PipelineShape shape{step.schedule, step.stage_count(), step.interleave, step.micro_batches};
  const PipelineWalk walk = walk_of(shape, times);
  const StepEnds ends = ends_of(step);
  return pipeline_bound(shape, {times, &walk, &ends}) + step.slowest_replica;
}

}  // namespace foretrain

#include "model/planning/plan_bound.hpp"

#include <algorithm>
#include <array>
#include <ranges>

#include "model/base/number.hpp"
#include "model/parallelism/pipeline_order.hpp"
#include "model/training/graph/pass_slices.hpp"

namespace foretrain {

namespace {

/// Lower bound of a rank class's blocks.
class RankClassBound {
 public:
  RankClassBound(const Step& step, std::size_t rank_class)
      : cut_(step.rank_classes[rank_class].split != Step::RankClass::SplitMode::none),
        transfers_(step.transfers.size()) {
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      for (const Step::Transfer::Part& part : step.transfers[i].parts) {
        if (std::ranges::binary_search(part.rank_classes, static_cast<int>(rank_class))) {
          transfers_[i] = std::max(transfers_[i], part.uncontended);
        }
      }
    }
    for (const Step::Chunk& chunk : step.rank_classes[rank_class].chunks) {
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
  [[nodiscard]] Seconds sum(const auto& transfers) const {
    Seconds time;
    for (const int index : transfers) time += index < 0 ? Seconds(0.0) : transfers_[at_index(index)];
    return time;
  }
  [[nodiscard]] Seconds sent(const GradientBucket& bucket) const {
    return sum(bucket.stages | std::views::transform(&GradientBucket::Stage::transfer));
  }
  /// Communication of a chunk's sharded layers in a micro-batch's passes: weights there, weights back and gradients.
  [[nodiscard]] Seconds weights(const Step::Chunk& chunk) const {
    Seconds time;
    for (const ShardedUnit& unit : chunk.units)
      time += sum(std::array{unit.gather, unit.gather_backward, unit.scatter});
    return time;
  }

 private:
  /// Whole, or cut into slices whose collectives are carried out beside or between them.
  [[nodiscard]] Seconds least(const PassCost& pass_cost) const {
    const std::vector<PassSlice> slices = cut_ ? slices_of(pass_cost) : std::vector<PassSlice>();
    if (slices.empty()) return pass_cost.time.total();
    Seconds time;
    for (const PassSlice& slice : slices) {
      const Seconds moving = sum(slice.transfers);
      time += slice.beside ? std::max(slice.work, moving) : slice.work + moving;
    }
    return std::min(time, pass_cost.time.total());
  }

  bool cut_;
  std::vector<Seconds> transfers_;  ///< their times for this rank class
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

std::vector<RankClassBound> classes_of(const Step& step) {
  std::vector<RankClassBound> rank_classes;
  rank_classes.reserve(step.rank_classes.size());
  for (std::size_t rank_class = 0; rank_class < step.rank_classes.size(); ++rank_class)
    rank_classes.emplace_back(step, rank_class);
  return rank_classes;
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

/// The least of all rank classes of a stage, by position in the model. A stage without classes is as the one before.
PassTimes pass_times_of(const Step& step, const std::vector<RankClassBound>& rank_classes) {
  const ChunkPlacement placement = step.placement();
  PassTimes times;
  PerPass<Seconds> unknown;
  unknown.values.fill(Seconds::infinity());
  times.updates.assign(at_index(step.stage_count()), Seconds::infinity());
  for (std::size_t i = 0; i < rank_classes.size(); ++i) {
    const Step::RankClass& rank_class = step.rank_classes[i];
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const std::size_t at = at_index(placement.position(rank_class.stage, chunk));
      if (at >= times.passes.size()) {
        times.passes.resize(at + 1, unknown);
        times.weights.resize(at + 1, Seconds::infinity());
      }
      const PerPass<Seconds>& own = rank_classes[i].passes()[at_index(chunk)];
      for (const PassKind kind : pass_kinds) times.passes[at][kind] = std::min(times.passes[at][kind], own[kind]);
      times.weights[at] = std::min(times.weights[at], rank_classes[i].weights(rank_class.chunks[at_index(chunk)]));
    }
    Seconds& update = times.updates[at_index(rank_class.stage)];
    update = std::min(update, rank_class.optimizer.total());
  }
  for (std::size_t stage = 1; stage < times.updates.size(); ++stage) {
    if (times.updates[stage] < Seconds::infinity()) continue;
    times.updates[stage] = times.updates[stage - 1];
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const std::size_t at = at_index(placement.position(static_cast<int>(stage), chunk));
      const std::size_t before = at_index(placement.position(static_cast<int>(stage) - 1, chunk));
      for (const PassKind kind : pass_kinds) {
        times.passes[at][kind] = std::min(times.passes[at][kind], times.passes[before][kind]);
      }
      times.weights[at] = std::min(times.weights[at], times.weights[before]);
    }
  }
  times.hop = hop_of(step);
  return times;
}

Seconds sum_of(const std::vector<Seconds>& times) {
  Seconds sum;
  for (const Seconds time : times) sum += time;
  return sum;
}

/// When a stage's gradients are, which chunk by chunk take so long. The last of its passes may send those that it makes
/// from its beginning.
Seconds synchronised(const std::vector<Seconds>& gradients, bool overlap, Seconds worked, Seconds last_pass) {
  return overlap ? worked - last_pass + *std::ranges::min_element(gradients) : worked + sum_of(gradients);
}

}  // namespace

PassTimes pass_times(const Step& step) {
  PassTimes times = pass_times_of(step, classes_of(step));
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
  ends.sync_each_micro_batch = step.sync_each_micro_batch;
  ends.stages.resize(at_index(step.stage_count()));
  for (std::size_t rank_class = 0; rank_class < step.rank_classes.size(); ++rank_class) {
    const RankClassBound times(step, rank_class);
    const Step::RankClass& own = step.rank_classes[rank_class];
    StepEnds::Stage here;
    for (const Step::Chunk& chunk : own.chunks) {
      Seconds& gradients = here.gradients.emplace_back();
      for (const GradientBucket& bucket : chunk.buckets) gradients += times.sent(bucket);
      here.last_sent.push_back(chunk.buckets.empty() ? Seconds(0.0) : times.sent(chunk.buckets.back()));
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
    stage.last_sent.resize(here.gradients.size(), Seconds::infinity());
    for (std::size_t chunk = 0; chunk < here.gradients.size(); ++chunk) {
      stage.gradients[chunk] = std::max(stage.gradients[chunk], here.gradients[chunk]);
      stage.last_sent[chunk] = std::min(stage.last_sent[chunk], here.last_sent[chunk]);
    }
    stage.weights = std::max(stage.weights, here.weights);
    stage.gathered = std::max(stage.gathered, here.gathered);
    stage.first_gather = std::min(stage.first_gather, step.gather_overlap ? here.first_gather : Seconds(0.0));
    stage.first_gathers = std::min(stage.first_gathers, step.gather_overlap ? here.first_gathers : Seconds(0.0));
  }
  ends.after = step.gradient_norm + step.once_per_step + step.loader_serial;
  return ends;
}

Seconds pipeline_bound(const PipelineShape& shape, const PassTimes& times, const StepEnds* ends) {
  const ChunkPlacement placement(shape.schedule, shape.stages, shape.interleave);
  const Paths paths = paths_of(placement, shape.stages, times);
  const bool parted = splits_backward(shape.schedule), in_pairs = shape.schedule == PipelineSchedule::dualpipe;
  const double each = shape.micro_batches * (in_pairs ? 0.5 : 1.0);
  Seconds longest, updated, with_update, late_begin = Seconds::infinity();
  for (int stage = 0; stage < shape.stages; ++stage) {
    Seconds work, weights, last_pass, head = Seconds::infinity(), tail = Seconds::infinity();
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const std::size_t at = at_index(placement.position(stage, chunk));
      const PerPass<Seconds>& passes = times.passes[at];
      const Seconds forward = passes[PassKind::forward], backward = passes[PassKind::backward];
      work += (forward + backward) * each;
      last_pass = std::max(last_pass, backward);
      if (in_pairs) {  // hides, if all passes ran so
        const Seconds other = times.passes[times.passes.size() - 1 - at][PassKind::backward];
        work -= (forward + other - passes[PassKind::paired]) * each;
        last_pass = std::max(last_pass, passes[PassKind::paired]);
      }
      if (!times.weights.empty()) weights += times.weights[at] * each;
      head = std::min(head, paths.to[at]);
      tail = std::min(tail, paths.from[at]);
    }
    Seconds passes = head + std::max(work + (parted ? Seconds(0.0) : tail), weights);
    Seconds update = times.updates.empty() ? Seconds(0.0) : times.updates[at_index(stage)];
    if (ends != nullptr) {
      const StepEnds::Stage& own = ends->stages[at_index(stage)];
      Seconds sent = own.weights;
      if (ends->sync_each_micro_batch) {
        sent += sum_of(own.gradients);
        // Backward passes but the last of each chunk wait for what they send.
        for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
          const Seconds backward = times.passes[at_index(placement.position(stage, chunk))][PassKind::backward];
          Seconds waits = ends->overlap ? own.last_sent[at_index(chunk)] : own.gradients[at_index(chunk)];
          if (!in_pairs) waits = std::max(waits, own.gradients[at_index(chunk)] - backward);
          work += waits * std::max(each - 1.0, 0.0);
        }
        passes = std::max(passes, head + work + (parted ? Seconds(0.0) : tail));
      }
      passes = std::max(passes, head + sent * static_cast<double>(shape.micro_batches));
      passes = std::max(passes, synchronised(own.gradients, ends->overlap, head + work, last_pass));
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
  const StepEnds ends = ends_of(step);
  return pipeline_bound(shape, times, &ends) + step.slowest_replica;
}

}  // namespace foretrain

#include "model/planning/plan_bound.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "model/base/hash.hpp"
#include "model/base/number.hpp"
#include "model/base/session.hpp"
#include "model/parallelism/pipeline_order.hpp"
#include "model/planning/lane_bound.hpp"

namespace foretrain {

namespace {

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

/// As a micro-batch sees them on its way: a backward pass may have two parts, and in pairs a pass is a part of one.
PassTimes on_the_way(PassTimes times, PipelineSchedule schedule) {
  for (PerPass<Seconds>& own : times.passes) {
    if (splits_backward(schedule)) own[PassKind::backward] = std::min(own[PassKind::backward], own[PassKind::inputs]);
    if (schedule == PipelineSchedule::dualpipe) own = {};
  }
  return times;
}

/// From the first pass of one lane to the moment at which its gradients are synchronised and its last pass's have left.
Seconds lane_bound(const Step& step, const Step::Lane& lane, const LaneBound& times, const Paths& paths,
                   const std::vector<PipelinePass>& order) {
  const ChunkPlacement placement = step.placement();
  const std::vector<PipelinePass> last = last_gradients(order, placement.chunks());
  Seconds head = Seconds::infinity(), tail = Seconds::infinity();
  for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
    const std::size_t at = at_index(placement.position(lane.stage, chunk));
    head = std::min(head, paths.to[at]);
    tail = std::min(tail, paths.from[at]);
  }
  Seconds now = head, sent, synchronised;
  bool in_pair = false;
  for (const PipelinePass& pass : order) {
    if (std::exchange(in_pair, pass.kind == PassKind::paired)) continue;  // its time is in the pass before
    const Step::Chunk& chunk = lane.chunks[at_index(pass.chunk)];
    const bool is_last = pass.makes_weight_gradients() && pass.micro_batch == last[at_index(pass.chunk)].micro_batch &&
                         chunk.units.empty();
    if (!is_last || !step.overlap) {
      now += times.passes()[at_index(pass.chunk)][pass.kind];
      continue;
    }
    for (const GradientBucket& bucket : chunk.buckets) {
      now += times.of_bucket(bucket);
      sent = std::max(sent, now) + times.sent(bucket);
    }
    synchronised = std::max(synchronised, sent);
  }
  if (!step.overlap) {
    synchronised = now;
    for (const Step::Chunk& chunk : lane.chunks) {
      for (const GradientBucket& bucket : chunk.buckets) synchronised += times.sent(bucket);
    }
  }
  return std::max(synchronised, now + (splits_backward(step.schedule) ? Seconds(0.0) : tail));
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
      for (const WeightGather& gather : chunk.gathers) all += times.gathered(gather);
      const Seconds first = chunk.gathers.empty() ? all : times.gathered(chunk.gathers.front());
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

/// A chunk of a stage, and everything that decides the order of that stage's passes.
struct PairsKey {
  using Value = const int;
  PipelineSchedule schedule;
  int stages = 1, interleave = 1, micro_batches = 1, stage = 0, chunk = 0;

  bool operator==(const PairsKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const {
    return hash_of(schedule, stages, interleave, micro_batches, stage, chunk);
  }
};

/// How many forward passes of one of a stage's chunks run in pairs.
double pairs_of(const Plan& plan, int stage, int chunk, int micro_batches) {
  const PairsKey key{plan.schedule, plan.pipeline, plan.interleave, micro_batches, stage, chunk};
  return *session().known(key, [&] {
    return static_cast<int>(std::ranges::count_if(
        pipeline_order(plan.schedule, plan.pipeline, stage, plan.interleave, micro_batches),
        [&](const PipelinePass& pass) { return pass.kind == PassKind::paired && pass.chunk == chunk; }));
  });
}

}  // namespace

std::optional<PipelineWalk> walk_of(const Plan& plan, int micro_batches, const PassTimes& times) {
  const auto orders = walked_orders({plan.schedule, plan.pipeline, plan.interleave, micro_batches});
  if (orders == nullptr) return std::nullopt;
  const ChunkPlacement placement(plan);
  std::vector<std::vector<PerPass<Seconds>>> passes(at_index(plan.pipeline));
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      passes[at_index(stage)].push_back(times.passes[at_index(placement.position(stage, chunk))]);
    }
  }
  return walk_pipeline(placement, *orders, micro_batches, passes, times.hop);
}

Seconds pipeline_bound(const Plan& plan, int micro_batches, const PipelineParts& known) {
  const auto& [times, walk, ends] = known;
  const ChunkPlacement placement(plan);
  const Paths paths = paths_of(placement, plan.pipeline, times);
  const bool parted = splits_backward(plan.schedule), in_pairs = plan.schedule == PipelineSchedule::dualpipe;
  const double each = micro_batches * (in_pairs ? 0.5 : 1.0);
  Seconds longest, updated, with_update, late_begin = Seconds::infinity();
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    Seconds work, weights, head = Seconds::infinity(), tail = Seconds::infinity();
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const std::size_t at = at_index(placement.position(stage, chunk));
      const PerPass<Seconds>& passes = times.passes[at];
      const Seconds forward = passes[PassKind::forward], backward = passes[PassKind::backward];
      work += (forward + backward) * each;
      if (in_pairs) {  // hides
        const Seconds other = times.passes[times.passes.size() - 1 - at][PassKind::backward];
        work -= (forward + other - passes[PassKind::paired]) * pairs_of(plan, stage, chunk, micro_batches);
      }
      if (!times.weights.empty()) weights += times.weights[at] * each;
      head = std::min(head, paths.to[at]);
      tail = std::min(tail, paths.from[at]);
    }
    Seconds passes = head + std::max(work + (parted ? Seconds(0.0) : tail), weights);
    Seconds update = times.updates.empty() ? Seconds(0.0) : times.updates[at_index(stage)];
    const PipelineWalk::Stage* walked = walk != nullptr ? &walk->stages[at_index(stage)] : nullptr;
    if (walked != nullptr) passes = std::max(passes, walked->end);
    if (ends != nullptr) {
      const StepEnds::Stage& own = ends->stages[at_index(stage)];
      passes = std::max(passes, head + own.weights * static_cast<double>(micro_batches));
      if (!ends->overlap) {
        passes = std::max(
            passes, std::max(head + work, walked != nullptr ? walked->end : Seconds(0.0)) + sum_of(own.gradients));
      } else if (walked != nullptr) {
        // A pass may send the gradients that it makes from its beginning, one after the other.
        for (std::size_t chunk = 0; chunk < own.gradients.size(); ++chunk) {
          const Seconds begin = walked->last_gradients[chunk];
          Seconds sent = begin;
          for (std::size_t other = 0; other < own.gradients.size(); ++other) {
            if (walked->last_gradients[other] >= begin) sent += own.gradients[other];
          }
          passes = std::max(passes, sent);
        }
      }
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

namespace {

/// What the passes of each stage's chunks take the quickest of its lanes.
std::vector<std::vector<PerPass<Seconds>>> quickest_passes(const Step& step, const std::vector<LaneBound>& lanes) {
  std::vector<std::vector<PerPass<Seconds>>> passes(at_index(step.stage_count()));
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    const std::vector<PerPass<Seconds>>& own = lanes[i].passes();
    std::vector<PerPass<Seconds>>& of_stage = passes[at_index(step.lanes[i].stage)];
    if (of_stage.empty()) of_stage = own;
    for (std::size_t chunk = 0; chunk < own.size(); ++chunk) {
      for (const PassKind kind : pass_kinds) of_stage[chunk][kind] = std::min(of_stage[chunk][kind], own[chunk][kind]);
    }
  }
  return passes;
}

/// The end of a lane's passes and of the gradients that they make, which are sent one after the other.
Seconds synchronised_by(const Step& step, const Step::Lane& lane, const LaneBound& times,
                        const PipelineWalk::Stage& walked) {
  if (!step.overlap) {
    Seconds end = walked.end;
    for (const Step::Chunk& chunk : lane.chunks) {
      for (const GradientBucket& bucket : chunk.buckets) end += times.sent(bucket);
    }
    return end;
  }
  std::vector<std::pair<Seconds, std::size_t>> chunks;
  for (std::size_t chunk = 0; chunk < lane.chunks.size(); ++chunk) {
    chunks.emplace_back(walked.last_gradients[chunk], chunk);
  }
  std::ranges::sort(chunks);
  Seconds sent;
  for (const auto& [begin, chunk] : chunks) {
    Seconds now = begin;
    for (const GradientBucket& bucket : lane.chunks[chunk].buckets) {
      now += times.of_bucket(bucket);
      sent = std::max(sent, now) + times.sent(bucket);
    }
  }
  return std::max(sent, walked.end);
}

/// By how much the first forward pass of a lane ends later than it takes, whichever of the chunks it is of: each part
/// of it waits for its weights, and these for those before.
Seconds late_begin(const Step::Lane& lane, const LaneBound& times) {
  Seconds least = Seconds::infinity();
  for (std::size_t chunk = 0; chunk < lane.chunks.size(); ++chunk) {
    Seconds gathered, done;
    for (const WeightGather& gather : lane.chunks[chunk].gathers) {
      gathered += times.gathered(gather);
      done = std::max(done, gathered) + times.beside_gathers(gather);
    }
    least = std::min(least, std::max(done - times.passes()[chunk][PassKind::forward], Seconds(0.0)));
  }
  return least;
}

}  // namespace

Seconds step_bound(const Step& step) {
  const std::vector<LaneBound> lanes = lanes_of(step);
  const PassTimes least = on_the_way(pass_times_of(step, lanes), step.schedule);
  const ChunkPlacement placement = step.placement();
  std::optional<PipelineWalk> walk;
  if (const auto orders = walked_orders({step.schedule, step.stage_count(), step.interleave, step.micro_batches})) {
    walk = walk_pipeline(placement, *orders, step.micro_batches, quickest_passes(step, lanes), least.hop);
  }
  const Paths paths = paths_of(placement, step.stage_count(), least);
  Seconds synchronised, after, late = Seconds::infinity();
  std::vector<PipelinePass> order;
  int stage = -1;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const Step::Lane& own = step.lanes[lane];
    if (walk) {
      synchronised = std::max(synchronised, synchronised_by(step, own, lanes[lane], walk->stages[at_index(own.stage)]));
    }
    if (!walk || lanes.size() > at_index(step.stage_count())) {
      if (std::exchange(stage, own.stage) != own.stage) order = step.order_of(own.stage);
      synchronised = std::max(synchronised, lane_bound(step, own, lanes[lane], paths, order));
    }
    late = std::min(late, step.gather_overlap ? late_begin(own, lanes[lane]) : Seconds(0.0));
    Seconds updated = own.optimizer.total();
    for (const Step::Chunk& chunk : own.chunks) {
      for (const WeightGather& gather : chunk.gathers) {
        updated += step.gather_overlap ? Seconds(0.0) : lanes[lane].gathered(gather);
      }
    }
    after = std::max(after, updated);
  }
  return late + synchronised + step.slowest_replica + step.gradient_norm + after + step.once_per_step +
         step.loader_serial;
}

}  // namespace foretrain

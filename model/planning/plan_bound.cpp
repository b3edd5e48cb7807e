#include "model/planning/plan_bound.hpp"

#include <algorithm>
#include <utility>

#include "model/base/number.hpp"
#include "model/parallelism/pipeline_order.hpp"
#include "model/training/gradient_sync.hpp"

namespace foretrain {

namespace {

/// By position in the model: the least time in which a micro-batch arrives there, and in which its gradients leave.
struct Paths {
  std::vector<Seconds> to, from;
};

Paths paths_of(const ChunkPlacement& placement, int stages, const PassTimes& times) {
  const std::size_t positions = times.forward.size();
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
    paths.to[at] = paths.to[at - 1] + times.forward[at - 1] + hop;
    paths.from[at] = paths.from[at - 1] + times.backward[at - 1] + hop;
  }
  return paths;
}

/// What one lane of a step does, as a bound sees it.
class LaneBound {
 public:
  LaneBound(const Step& step, std::size_t lane)
      : step_(step), lane_(step.lanes[lane]), number_(static_cast<int>(lane)) {}

  /// Of a pass by itself.
  [[nodiscard]] Seconds pass(const PipelinePass& pass) const {
    const Step::Chunk& chunk = lane_.chunks[at_index(pass.chunk)];
    if (!chunk.units.empty()) {
      Seconds time;
      for (const ShardedUnit& unit : chunk.units) {
        time += pass.backward ? least(unit.backward, unit.backward_pieces) : least(unit.forward, unit.forward_pieces);
      }
      return time;
    }
    if (!pass.backward) {
      return pass.beside_next ? least(chunk.paired, chunk.paired_pieces) : least(chunk.forward, chunk.forward_pieces);
    }
    if (pass.part == PipelinePass::Part::whole) return least(chunk.backward, chunk.backward_pieces);
    return pass.part == PipelinePass::Part::inputs ? least(chunk.inputs, chunk.inputs_pieces)
                                                   : least(chunk.weights, chunk.weights_pieces);
  }

  [[nodiscard]] Seconds of_bucket(const GradientBucket& bucket) const { return least(bucket.backward, bucket.pieces); }
  /// Its transfers, one after the other.
  [[nodiscard]] Seconds sent(const GradientBucket& bucket) const {
    Seconds time = transfer(bucket.transfer);
    for (const GradientBucket::Stage& part : bucket.further) time += transfer(part.transfer);
    return time;
  }
  [[nodiscard]] Seconds transfer(int index) const {
    if (index < 0) return Seconds(0.0);
    Seconds longest;
    for (const Step::Transfer::Part& part : step_.transfers[at_index(index)].parts) {
      if (std::ranges::binary_search(part.lanes, number_)) longest = std::max(longest, part.uncontended);
    }
    return longest;
  }

 private:
  /// Whole, or cut into pieces whose collectives are carried out beside or between them.
  [[nodiscard]] Seconds least(const Segment& whole, const std::vector<Piece>& pieces) const {
    if (pieces.empty()) return whole.total();
    Seconds time;
    for (const Piece& piece : pieces) {
      Seconds moving;
      for (const int index : piece.transfers) moving += transfer(index);
      time += piece.beside ? std::max(piece.work, moving) : piece.work + moving;
    }
    return std::min(time, whole.total());
  }

  const Step& step_;
  const Step::Lane& lane_;
  int number_;
};

/// The least of all lanes of a stage, by position in the model.
PassTimes pass_times(const Step& step, const std::vector<LaneBound>& lanes) {
  const ChunkPlacement placement = step.placement();
  PassTimes times;
  times.hop = Seconds::infinity();
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const std::size_t at = at_index(placement.position(step.lanes[i].stage, chunk));
      if (at >= times.forward.size()) {
        times.forward.resize(at + 1, Seconds::infinity());
        times.backward.resize(at + 1, Seconds::infinity());
      }
      const bool paired = step.schedule == PipelineSchedule::dualpipe;  // may begin or end in a pair: a part of it
      const Seconds forward = lanes[i].pass({.chunk = chunk}),
                    backward = lanes[i].pass({.backward = true, .chunk = chunk});
      const Seconds inputs = lanes[i].pass({.backward = true, .chunk = chunk, .part = PipelinePass::Part::inputs});
      const bool parted = splits_backward(step.schedule);
      times.forward[at] = std::min(times.forward[at], paired ? Seconds(0.0) : forward);
      times.backward[at] = std::min(times.backward[at], paired   ? Seconds(0.0)
                                                        : parted ? std::min(inputs, backward)
                                                                 : backward);
    }
  }
  for (const std::vector<int>* hops : {&step.activations, &step.activation_gradients}) {
    for (const int hop : *hops) {
      if (hop < 0) continue;
      for (const Step::Transfer::Part& part : step.transfers[at_index(hop)].parts) {
        times.hop = std::min(times.hop, part.uncontended);
      }
    }
  }
  if (times.hop == Seconds::infinity()) times.hop = Seconds(0.0);
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
    if (std::exchange(in_pair, pass.beside_next)) continue;  // its time is in the pass before
    const Step::Chunk& chunk = lane.chunks[at_index(pass.chunk)];
    const bool is_last = pass.makes_weight_gradients() && pass.micro_batch == last[at_index(pass.chunk)].micro_batch &&
                         chunk.units.empty();
    if (!is_last || !step.overlap) {
      now += times.pass(pass);
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

StepEnds ends_of(const Step& step, const Plan& plan) {
  const bool gathers = (plan.zero == 1 || plan.zero == 2) && step.overlap;
  constexpr auto parts = static_cast<double>(GradientSync::most_buckets);
  StepEnds ends;
  ends.overlap = step.overlap;
  ends.stages.resize(at_index(step.stage_count()));
  for (std::size_t lane = 0; lane < step.lanes.size(); ++lane) {
    const LaneBound times(step, lane);
    const Step::Lane& own = step.lanes[lane];
    StepEnds::Stage here;
    for (const Step::Chunk& chunk : own.chunks) {
      for (const GradientBucket& bucket : chunk.buckets) here.gradients += times.sent(bucket);
      for (const ShardedUnit& unit : chunk.units) {
        here.weights +=
            times.transfer(unit.gather) + times.transfer(unit.gather_backward) + times.transfer(unit.scatter);
      }
    }
    here.optimizer = own.optimizer.compute + own.optimizer.host;
    // communication = first + max((parts - 1) · first - forward, 0), solved for the first
    const Seconds exposed = own.optimizer.communication, forward = own.chunks.front().forward.total();
    const bool hidden = exposed * (parts - 1.0) <= forward;
    if (gathers) here.first_gather = hidden ? exposed : (exposed + forward) / parts;
    StepEnds::Stage& stage = ends.stages[at_index(own.stage)];
    stage.gradients = std::max(stage.gradients, here.gradients);
    stage.weights = std::max(stage.weights, here.weights);
    stage.optimizer = std::max(stage.optimizer, here.optimizer);
    stage.first_gather = std::max(stage.first_gather, here.first_gather);
  }
  ends.after = step.gradient_norm + step.once_per_step + step.loader_serial;
  return ends;
}

namespace {

/// What a stage has done before gradients of the last micro-batch can be sent: the whole pass that makes the first of
/// them may send them from its beginning.
Seconds before_gradients(const Plan& plan, int stage, int micro_batches, const PassTimes& times) {
  const ChunkPlacement placement(plan);
  const std::vector<PipelinePass> order =
      pipeline_order(plan.schedule, plan.pipeline, stage, plan.interleave, micro_batches);
  const std::vector<PipelinePass> last = last_gradients(order, placement.chunks());
  Seconds before;
  for (const PipelinePass& pass : order) {
    if (pass.makes_weight_gradients() && pass.micro_batch == last[at_index(pass.chunk)].micro_batch) break;
    const std::size_t at = at_index(placement.position(stage, pass.chunk));
    if (!pass.backward) before += times.forward[at];
    if (pass.backward && pass.part == PipelinePass::Part::whole) before += times.backward[at];
  }
  return before;
}

}  // namespace

Seconds pipeline_bound(const Plan& plan, int micro_batches, const PassTimes& times, const StepEnds* ends) {
  constexpr int most_passes = 20'000;  // in all stages; an order of more takes as long as it saves
  constexpr auto parts = static_cast<double>(GradientSync::most_buckets);
  const ChunkPlacement placement(plan);
  const Paths paths = paths_of(placement, plan.pipeline, times);
  const bool parted = splits_backward(plan.schedule);
  const double each = micro_batches * (plan.schedule == PipelineSchedule::dualpipe ? 0.5 : 1.0);
  const bool few = micro_batches * plan.pipeline * placement.chunks() <= most_passes;
  Seconds longest, optimizer, with_optimizer;
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    Seconds work, head = Seconds::infinity(), tail = Seconds::infinity();
    for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
      const std::size_t at = at_index(placement.position(stage, chunk));
      work += (times.forward[at] + times.backward[at]) * each;
      head = std::min(head, paths.to[at]);
      tail = std::min(tail, paths.from[at]);
    }
    Seconds passes = head + work + (parted ? Seconds(0.0) : tail);
    if (ends != nullptr) {
      const StepEnds::Stage& own = ends->stages[at_index(stage)];
      passes = std::max(passes, head + own.weights * static_cast<double>(micro_batches));
      if (!ends->overlap) passes = std::max(passes, head + work + own.gradients);
      if (ends->overlap && few && own.gradients > Seconds(0.0)) {
        passes = std::max(passes, head + before_gradients(plan, stage, micro_batches, times) + own.gradients);
      }
      // The longer the first pass, the less is gathered in sight, but by no more than it is longer. Where what runs
      // beside a pass makes it longer by itself than in the graph, that is not certain.
      const bool beside = plan.context > 1 || plan.expert > 1 || plan.tensor_overlap || plan.offload.any();
      const Seconds forward = times.forward[at_index(placement.position(stage, 0))];
      const Seconds gathers =
          beside ? Seconds(0.0) : own.first_gather + std::max(own.first_gather * (parts - 1.0) - forward, Seconds(0.0));
      optimizer = std::max(optimizer, own.optimizer);
      with_optimizer = std::max(with_optimizer, passes + own.optimizer + gathers);
    }
    longest = std::max(longest, passes);
  }
  return std::max(longest + optimizer, with_optimizer) + (ends != nullptr ? ends->after : Seconds(0.0));
}

Seconds step_bound(const Step& step) {
  std::vector<LaneBound> lanes;
  for (std::size_t lane = 0; lane < step.lanes.size(); ++lane) lanes.emplace_back(step, lane);
  const Paths paths = paths_of(step.placement(), step.stage_count(), pass_times(step, lanes));
  Seconds synchronised, after;
  std::vector<PipelinePass> order;
  int stage = -1;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const Step::Lane& own = step.lanes[lane];
    if (std::exchange(stage, own.stage) != own.stage) order = step.order_of(own.stage);
    synchronised = std::max(synchronised, lane_bound(step, own, lanes[lane], paths, order));
    Seconds optimizer = own.optimizer.total();
    for (const int gather : own.parameter_gathers) optimizer += lanes[lane].transfer(gather);
    after = std::max(after, optimizer);
  }
  return synchronised + step.slowest_replica + step.gradient_norm + after + step.once_per_step + step.loader_serial;
}

}  // namespace foretrain

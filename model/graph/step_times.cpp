#include "model/graph/step_times.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "model/graph/sharded_order.hpp"

namespace foretrain {

namespace {

Seconds transfer_time(const Step& step, int index) {
  return index < 0 ? Seconds(0.0) : step.transfers[static_cast<std::size_t>(index)].isolated;
}

/// One micro-batch through sharded units: both streams start at zero, the result is when both have finished.
Seconds sharded_time(const Step& step, const ModelChunk& chunk, bool backward) {
  const std::vector<ShardedPass> order = sharded_order(chunk.units, backward);
  std::vector<Seconds> finish(order.size());
  Seconds compute_free;
  Seconds communication_free;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ShardedPass& pass = order[i];
    const ShardedUnit& unit = chunk.units[static_cast<std::size_t>(pass.unit)];
    const bool compute = pass.kind == ShardedPass::Kind::compute;
    Seconds& free = compute ? compute_free : communication_free;
    Seconds duration;
    switch (pass.kind) {
      case ShardedPass::Kind::compute: duration = (backward ? unit.backward : unit.forward).total(); break;
      case ShardedPass::Kind::gather: duration = transfer_time(step, backward ? unit.gather_backward : unit.gather); break;
      case ShardedPass::Kind::scatter: duration = transfer_time(step, unit.scatter); break;
    }
    Seconds start = free;
    for (const int before : pass.after) start = std::max(start, finish[static_cast<std::size_t>(before)]);
    finish[i] = start + duration;
    free = finish[i];
  }
  return std::max(compute_free, communication_free);
}

/// The backward pass of the last micro-batch: with overlap it runs bucket by bucket, slowed by the collectives beside it.
Segment last_backward_of(const Step& step, const ModelChunk& chunk) {
  if (!step.overlap) return chunk.backward;
  Segment sum;
  for (const GradientBucket& bucket : chunk.buckets) sum += bucket.backward;
  return sum;
}

struct PassTimes {
  Seconds forward, backward, last_backward;
};
PassTimes pass_times(const Step& step, const ModelChunk& chunk) {
  if (chunk.units.empty()) {
    return {chunk.forward.total(), chunk.backward.total(), last_backward_of(step, chunk).total()};
  }
  const Seconds backward = sharded_time(step, chunk, true);
  return {sharded_time(step, chunk, false), backward, backward};
}

/// When each stage begins its last backward pass of each chunk, and when it has finished everything.
struct PipelineTimes {
  std::vector<std::vector<Seconds>> last_backward_start;  ///< [stage][chunk]
  std::vector<Seconds> done;                              ///< [stage]
};

/// Advances every stage through its order of passes as far as dependencies allow, until all are through. A forward pass
/// needs the same micro-batch from the chunk before it in model order, a backward pass from the one after it; what a
/// stage sends in one direction goes out one message at a time.
class PipelineRecursion {
 public:
  PipelineRecursion(const Step& step, bool with_boundary);
  PipelineTimes run() &&;

 private:
  struct Lane {
    std::vector<PipelinePass> order;
    std::vector<PassTimes> cost;  // by chunk
    std::size_t position = 0;
    Seconds to_next_free, to_previous_free;
  };
  bool advance(int s, const PipelinePass& pass);
  [[nodiscard]] Seconds hop(int from_stage, int to_stage, bool backward) const;
  [[nodiscard]] std::size_t at(int chunk, int micro) const {
    return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(step_.micro_batches) + static_cast<std::size_t>(micro);
  }

  static constexpr Seconds never = Seconds(-1.0);
  const Step& step_;
  bool with_boundary_;
  int stages_;
  int chunks_;
  std::vector<Lane> lanes_;
  std::vector<Seconds> forward_, backward_;  // arrival at the chunk that waits for it
  PipelineTimes result_;
};

PipelineRecursion::PipelineRecursion(const Step& step, bool with_boundary)
    : step_(step),
      with_boundary_(with_boundary),
      stages_(step.stage_count()),
      chunks_(stages_ * step.interleave),
      lanes_(step.stages.size()),
      forward_(static_cast<std::size_t>(chunks_) * static_cast<std::size_t>(step.micro_batches), never),
      backward_(forward_.size(), never) {
  result_.done.assign(step.stages.size(), Seconds(0.0));
  result_.last_backward_start.assign(step.stages.size(), std::vector<Seconds>(static_cast<std::size_t>(step.interleave)));
  for (int s = 0; s < stages_; ++s) {
    Lane& lane = lanes_[static_cast<std::size_t>(s)];
    lane.order = pipeline_order(stages_, s, step.interleave, step.micro_batches);
    for (const ModelChunk& chunk : step.stages[static_cast<std::size_t>(s)].chunks) lane.cost.push_back(pass_times(step, chunk));
  }
}

Seconds PipelineRecursion::hop(int from_stage, int to_stage, bool backward) const {
  if (!with_boundary_ || stages_ == 1) return Seconds(0.0);
  // Interleaved pipelines wrap around from the last stage to the first; that hop costs what its neighbours cost.
  const int lower_stage = std::min(std::min(from_stage, to_stage), stages_ - 2);
  return transfer_time(step_, (backward ? step_.activation_gradients : step_.activations)[static_cast<std::size_t>(lower_stage)]);
}

bool PipelineRecursion::advance(int s, const PipelinePass& pass) {
  const auto si = static_cast<std::size_t>(s);
  Lane& lane = lanes_[si];
  const int chunk = pass.chunk * stages_ + s;
  const int source = pass.backward ? chunk + 1 : chunk - 1;
  const int target = pass.backward ? chunk - 1 : chunk + 1;
  std::vector<Seconds>& arrivals = pass.backward ? backward_ : forward_;
  Seconds ready;
  if (source >= 0 && source < chunks_) {
    ready = arrivals[at(source, pass.micro_batch)];
    if (ready == never) return false;
  }
  const PassTimes& times = lane.cost[static_cast<std::size_t>(pass.chunk)];
  const bool last = pass.micro_batch == step_.micro_batches - 1;
  const Seconds start = std::max(ready, result_.done[si]);
  const Seconds finish = start + (!pass.backward ? times.forward : (last ? times.last_backward : times.backward));
  if (pass.backward) result_.last_backward_start[si][static_cast<std::size_t>(pass.chunk)] = start;
  result_.done[si] = finish;
  Seconds arrival = finish;
  if (target >= 0 && target < chunks_) {
    Seconds& free = pass.backward ? lane.to_previous_free : lane.to_next_free;
    arrival = std::max(finish, free) + hop(s, target % stages_, pass.backward);
    free = arrival;
  }
  arrivals[at(chunk, pass.micro_batch)] = arrival;
  return true;
}

PipelineTimes PipelineRecursion::run() && {
  std::size_t left = 0;
  for (const Lane& lane : lanes_) left += lane.order.size();
  while (left > 0) {
    const std::size_t before = left;
    for (int s = 0; s < stages_; ++s) {
      Lane& lane = lanes_[static_cast<std::size_t>(s)];
      while (lane.position < lane.order.size() && advance(s, lane.order[lane.position])) {
        ++lane.position;
        --left;
      }
    }
    if (left == before) throw std::logic_error("the pipeline's order of work has a cycle");
  }
  return std::move(result_);
}

PipelineTimes pipeline_times(const Step& step, bool with_boundary) { return PipelineRecursion(step, with_boundary).run(); }

/// When a stage's gradients are synchronised: one communication stream works off the buckets as they become ready.
Seconds synchronised_at(const Step& step, int s, const PipelineTimes& pipeline) {
  const PipelineStage& stage = step.stages[static_cast<std::size_t>(s)];
  const Seconds done = pipeline.done[static_cast<std::size_t>(s)];
  Seconds free = step.overlap ? Seconds(0.0) : done;
  bool any = false;
  for (std::size_t k = stage.chunks.size(); k-- > 0;) {
    Seconds ready = pipeline.last_backward_start[static_cast<std::size_t>(s)][k];
    for (const GradientBucket& bucket : stage.chunks[k].buckets) {
      ready += bucket.backward.total();
      if (bucket.transfer < 0) continue;
      free = std::max(free, ready) + transfer_time(step, bucket.transfer);
      any = true;
    }
  }
  return any ? std::max(free, done) : done;
}

/// The stage with the most work of its own; the step is seen from there.
std::size_t busiest_stage(const Step& step) {
  std::size_t busiest = 0;
  Seconds most(-1.0);
  for (std::size_t s = 0; s < step.stages.size(); ++s) {
    Seconds work;
    for (const ModelChunk& chunk : step.stages[s].chunks) work += chunk.forward.total() + chunk.backward.total();
    if (work > most) {
      most = work;
      busiest = s;
    }
  }
  return busiest;
}

/// Forward and backward work of one stage over the whole step.
Segment passes_of(const Step& step, std::size_t s) {
  const auto passes = static_cast<double>(step.micro_batches);
  Segment work;
  for (const ModelChunk& chunk : step.stages[s].chunks) {
    if (chunk.units.empty()) {
      work += chunk.forward * passes;
      work += chunk.backward * (passes - 1.0);
      work += last_backward_of(step, chunk);
    }
    for (const ShardedUnit& unit : chunk.units) {
      work += unit.forward * passes;
      work += unit.backward * passes;
    }
  }
  return work;
}

}  // namespace

StepTimes estimate_step(const Step& step) {
  const PipelineTimes pipeline = pipeline_times(step, true);
  StepTimes times;
  for (int s = 0; s < step.stage_count(); ++s) {
    times.backward_done = std::max(times.backward_done, pipeline.done[static_cast<std::size_t>(s)]);
    times.synchronised = std::max(times.synchronised, synchronised_at(step, s, pipeline));
  }
  Seconds update;
  for (const PipelineStage& stage : step.stages) {
    update = std::max(update, stage.optimizer.total() + transfer_time(step, stage.parameter_gather));
  }
  times.end = times.synchronised + step.gradient_norm + update;
  return times;
}

StepTimes times_of(const UnrolledStep& unrolled, const Execution& execution) {
  StepTimes times;
  for (const TaskId task : unrolled.last_backward) {
    times.backward_done = std::max(times.backward_done, execution.finish[static_cast<std::size_t>(task)]);
  }
  times.synchronised = execution.start[static_cast<std::size_t>(unrolled.synchronised)];
  times.end = execution.makespan;
  return times;
}

Seconds step_time(const Step& step, const StepTimes& times) {
  return std::max(times.end + step.once_per_step, step.loader_interval);
}

Breakdown breakdown_of(const Step& step, const StepTimes& times) {
  const std::size_t s = busiest_stage(step);
  const PipelineStage& stage = step.stages[s];
  const Segment passes = passes_of(step, s);
  const Seconds idle = std::max(times.backward_done - passes.total(), Seconds(0.0));
  Seconds idle_in_pipeline;
  if (step.stage_count() > 1) {
    // What would remain of the idle time if activations moved in no time is the bubble.
    const PipelineTimes free_boundary = pipeline_times(step, false);
    Seconds done;
    for (const Seconds t : free_boundary.done) done = std::max(done, t);
    idle_in_pipeline = std::clamp(done - passes.total(), Seconds(0.0), idle);
  }

  Breakdown breakdown;
  breakdown.compute = passes.compute;
  breakdown.pipeline_bubble = idle_in_pipeline;
  breakdown.host_overhead = passes.host + stage.optimizer.host + step.once_per_step;
  breakdown.optimizer = stage.optimizer.compute;
  breakdown.data_stall = std::max(step.loader_interval - times.end - step.once_per_step, Seconds(0.0));
  const Seconds rest = step_time(step, times) - breakdown.total();
  breakdown.exposed_communication = std::max(rest, Seconds(0.0));
  // Dispatch and communication can overlap in ways that the parts above count twice; compute absorbs the difference.
  breakdown.compute += std::min(rest, Seconds(0.0));
  return breakdown;
}

std::map<std::string, CommunicationTime> communication_of(const Step& step, const Breakdown& breakdown) {
  const std::size_t s = busiest_stage(step);
  const PipelineStage& stage = step.stages[s];
  std::map<std::string, CommunicationTime> table;
  const auto add = [&](int index, double times) {
    if (index < 0) return;
    const SharedTransfer& transfer = step.transfers[static_cast<std::size_t>(index)];
    table[transfer.name].total += transfer.isolated * times;
  };
  const auto passes = static_cast<double>(step.micro_batches);
  for (const ModelChunk& chunk : stage.chunks) {
    for (const GradientBucket& bucket : chunk.buckets) add(bucket.transfer, 1.0);
    for (const ShardedUnit& unit : chunk.units) {
      add(unit.gather, passes);
      add(unit.gather_backward, passes);
      add(unit.scatter, passes);
    }
  }
  add(stage.parameter_gather, 1.0);
  if (!step.activations.empty()) {
    const std::size_t neighbour = std::min(s, step.activations.size() - 1);
    add(step.activations[neighbour], passes * step.interleave);
    add(step.activation_gradients[neighbour], passes * step.interleave);
  }

  const Seconds in_layers = passes_of(step, s).communication;
  Seconds hidden_or_not;
  for (const auto& [name, time] : table) hidden_or_not += time.total;
  const Seconds exposed = std::max(breakdown.exposed_communication - in_layers, Seconds(0.0));
  for (auto& [name, time] : table) {
    if (hidden_or_not.value() > 0.0) time.exposed = std::min(time.total, exposed * (time.total / hidden_or_not));
  }
  if (in_layers.value() > 0.0) table["collectives inside layers"] = {in_layers, in_layers};
  return table;
}

}  // namespace foretrain

#include "model/training/pipeline_times.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "model/training/bucket_times.hpp"
#include "model/training/sharded_order.hpp"

namespace foretrain {

namespace {

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
      case ShardedPass::Kind::compute:
        duration = (backward ? unit.backward : unit.forward).total();
        break;
      case ShardedPass::Kind::gather:
        duration = transfer_time(step, backward ? unit.gather_backward : unit.gather);
        break;
      case ShardedPass::Kind::scatter:
        duration = transfer_time(step, unit.scatter);
        break;
    }
    Seconds start = free;
    for (const int before : pass.after) start = std::max(start, finish[static_cast<std::size_t>(before)]);
    finish[i] = start + duration;
    free = finish[i];
  }
  return std::max(compute_free, communication_free);
}

struct PassTimes {
  Seconds forward, backward, last_backward;
};
PassTimes pass_times(const Step& step, const ModelChunk& chunk) {
  if (chunk.units.empty()) {
    const Seconds backward = step.every_micro_batch ? synchronised_backward(step, chunk) : chunk.backward.total();
    return {chunk.forward.total(), backward, last_backward_of(step, chunk).total()};
  }
  const Seconds backward = sharded_time(step, chunk, true);
  return {sharded_time(step, chunk, false), backward, backward};
}

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
    return static_cast<std::size_t>(chunk) * static_cast<std::size_t>(step_.micro_batches) +
           static_cast<std::size_t>(micro);
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
  result_.last_backward_start.assign(step.stages.size(),
                                     std::vector<Seconds>(static_cast<std::size_t>(step.interleave)));
  for (int s = 0; s < stages_; ++s) {
    Lane& lane = lanes_[static_cast<std::size_t>(s)];
    lane.order = pipeline_order(stages_, s, step.interleave, step.micro_batches);
    for (const ModelChunk& chunk : step.stages[static_cast<std::size_t>(s)].chunks)
      lane.cost.push_back(pass_times(step, chunk));
  }
}

Seconds PipelineRecursion::hop(int from_stage, int to_stage, bool backward) const {
  if (!with_boundary_ || stages_ == 1) return Seconds(0.0);
  return transfer_time(step_, step_.hop(from_stage, to_stage, backward));
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

}  // namespace

Seconds transfer_time(const Step& step, int index) {
  return index < 0 ? Seconds(0.0) : step.transfers[static_cast<std::size_t>(index)].isolated;
}

Segment last_backward_of(const Step& step, const ModelChunk& chunk) {
  if (!step.overlap) return chunk.backward;
  Segment sum;
  for (const GradientBucket& bucket : chunk.buckets) sum += bucket.backward;
  return sum;
}

PipelineTimes pipeline_times(const Step& step, bool with_boundary) {
  return PipelineRecursion(step, with_boundary).run();
}

}  // namespace foretrain

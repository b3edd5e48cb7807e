#include "model/training/step_times.hpp"

#include <algorithm>

#include "model/training/bucket_times.hpp"
#include "model/training/pipeline_times.hpp"

namespace foretrain {

namespace {

/// When a stage's gradients are synchronised: one communication stream works off the buckets as they become ready.
Seconds synchronised_at(const Step& step, int s, const PipelineTimes& pipeline) {
  const PipelineStage& stage = step.stages[static_cast<std::size_t>(s)];
  const Seconds done = pipeline.done[static_cast<std::size_t>(s)];
  BucketStreams streams(step, step.overlap ? Seconds(0.0) : done);
  for (std::size_t k = stage.chunks.size(); k-- > 0;) {
    Seconds ready = pipeline.last_backward_start[static_cast<std::size_t>(s)][k];
    for (const GradientBucket& bucket : stage.chunks[k].buckets) {
      ready += bucket.backward.total();
      streams.add(bucket, ready);
    }
  }
  return streams.used() ? std::max(streams.finish(), done) : done;
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
  times.synchronised += step.slowest_replica;
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
  return std::max(times.end + step.once_per_step + step.loader_serial, times.loader.value_or(step.loader_interval));
}

}  // namespace foretrain

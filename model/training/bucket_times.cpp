#include "model/training/bucket_times.hpp"

#include <algorithm>

#include "model/training/pipeline_times.hpp"

namespace foretrain {

void BucketStreams::add(const GradientBucket& bucket, Seconds ready) {
  if (bucket.transfer < 0) return;
  used_ = true;
  Seconds now = ready;
  const auto kernels = [&](Seconds time) {
    if (!(time > Seconds(0.0))) return;
    now = std::max(now, kernels_free_) + time;
    kernels_free_ = now;
  };
  const auto transfer = [&](int index) {
    now = std::max(now, transfers_free_) + transfer_time(step_, index);
    transfers_free_ = now;
  };
  kernels(bucket.before);
  transfer(bucket.transfer);
  for (const SyncStage& part : bucket.further) {
    kernels(part.kernels);
    transfer(part.transfer);
  }
  kernels(bucket.after);
  finish_ = std::max(finish_, now);
}

Seconds synchronised_backward(const Step& step, const ModelChunk& chunk) {
  const Seconds done = last_backward_of(step, chunk).total();
  BucketStreams streams(step, step.overlap ? Seconds(0.0) : done);
  Seconds ready;
  for (const GradientBucket& bucket : chunk.buckets) {
    ready += bucket.backward.total();
    streams.add(bucket, step.overlap ? ready : done);
  }
  return std::max(done, streams.finish());
}

}  // namespace foretrain

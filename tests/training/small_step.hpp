// Steps small enough to be worked out by hand.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/training/step/step.hpp"

namespace foretrain::test {

inline TimeBreakdown compute(double seconds) { return {{}, Seconds(seconds)}; }

/// Takes so long on these rank classes; its index.
inline int add_transfer(Step& step, double seconds, std::vector<int> rank_classes, std::string name = "transfer") {
  Step::Transfer::Part part;
  part.lowered.phases.push_back({Seconds(seconds), {}, 1});
  part.uncontended = Seconds(seconds);
  part.rank_classes = std::move(rank_classes);
  step.transfers.push_back({std::move(name), {part}});
  return static_cast<int>(step.transfers.size()) - 1;
}

inline GradientBucket bucket_of(double backward, int transfer = -1) {
  GradientBucket bucket;
  bucket.backward.time = compute(backward);
  if (transfer >= 0) bucket.stages.push_back({Seconds(0.0), transfer});
  bucket.gradients = Bytes(1.0);
  return bucket;
}

/// One stage, one chunk whose backward pass falls into equal buckets.
inline Step data_parallel_step(int buckets, double forward, double bucket_backward, double bucket_transfer,
                               bool overlap) {
  Step step;
  step.overlap = overlap;
  step.rank_classes.resize(1);
  Step::Chunk chunk;
  chunk.passes[PassKind::forward].time = compute(forward);
  chunk.passes[PassKind::backward].time = compute(bucket_backward * buckets);
  const int transfer = add_transfer(step, bucket_transfer, {0});
  for (int b = 0; b < buckets; ++b) chunk.buckets.push_back(bucket_of(bucket_backward, transfer));
  step.rank_classes[0].chunks.push_back(chunk);
  return step;
}

/// Times of the passes of one chunk.
struct PassSeconds {
  double forward = 1.0, inputs = 1.0, weights = 1.0;
  std::optional<double> paired = std::nullopt;
};

/// Stages whose gradients nobody shares, and messages between them that take `hop`.
inline Step pipeline_step(PipelineSchedule schedule, int stages, int interleave, int micro_batches,
                          const PassSeconds& each = {}, double hop = 0.0) {
  Step step;
  step.schedule = schedule;
  step.interleave = interleave;
  step.micro_batches = micro_batches;
  step.overlap = false;
  const ChunkPlacement placement(schedule, stages, interleave);
  Step::Chunk chunk;
  chunk.passes[PassKind::forward].time = compute(each.forward);
  chunk.passes[PassKind::inputs].time = compute(each.inputs);
  chunk.passes[PassKind::weights].time = compute(each.weights);
  chunk.passes[PassKind::backward].time = compute(each.inputs + each.weights);
  chunk.passes[PassKind::paired].time = compute(each.paired.value_or(each.forward + each.inputs + each.weights));
  chunk.buckets.push_back(bucket_of(each.inputs + each.weights));
  for (int stage = 0; stage < stages; ++stage) {
    Step::RankClass& rank_class = step.rank_classes.emplace_back();
    rank_class.stage = stage;
    rank_class.chunks.assign(static_cast<std::size_t>(placement.chunks()), chunk);
  }
  for (int k = 0; k < placement.chunks(); ++k) {
    for (int stage = 0; stage < stages; ++stage) {
      const auto next = placement.next(stage, k);
      const int to = next ? next->stage : stage;
      const std::vector<int> both{std::min(stage, to), std::max(stage, to)};
      for (std::vector<int>* hops : {&step.activations, &step.activation_gradients}) {
        hops->push_back(to == stage ? -1 : add_transfer(step, hop, both));
      }
    }
  }
  return step;
}

}  // namespace foretrain::test

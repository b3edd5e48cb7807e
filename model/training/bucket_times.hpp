// When the gradients of a backward pass are synchronised: buckets on a communication stream, with their kernels on a
// stream beside it.
#pragma once

#include "model/training/step.hpp"

namespace foretrain {

/// The streams of one stage. Each works on one thing at a time in the order in which buckets are added, as unroll()
/// lays them out.
class BucketStreams {
 public:
  BucketStreams(const Step& step, Seconds free) : step_(step), transfers_free_(free), kernels_free_(free) {}

  /// Synchronises a bucket whose gradients are there at `ready`; nothing for one without a transfer.
  void add(const GradientBucket& bucket, Seconds ready);

  [[nodiscard]] bool used() const { return used_; }
  /// When the last of the buckets so far is synchronised.
  [[nodiscard]] Seconds finish() const { return finish_; }

 private:
  const Step& step_;
  Seconds transfers_free_, kernels_free_, finish_;
  bool used_ = false;
};

/// From the start of a backward pass until its gradients are synchronised, for a stage of one chunk.
Seconds synchronised_backward(const Step& step, const ModelChunk& chunk);

}  // namespace foretrain

// What the blocks of a step take one of its lanes at least.
#pragma once

#include <vector>

#include "model/base/number.hpp"
#include "model/parallelism/pipeline_order.hpp"
#include "model/training/step/step.hpp"

namespace foretrain {

class LaneBound {
 public:
  LaneBound(const Step& step, std::size_t lane);

  /// The passes of its chunks, each by itself.
  [[nodiscard]] const std::vector<PerPass<Seconds>>& passes() const { return passes_; }
  /// Its transfers, one after the other.
  [[nodiscard]] Seconds sent(const GradientBucket& bucket) const;
  [[nodiscard]] Seconds gathered(const WeightGather& gather) const;
  /// Of a chunk's sharded layers: weights there, weights back and gradients, in a micro-batch's passes.
  [[nodiscard]] Seconds weights(const Step::Chunk& chunk) const;
  [[nodiscard]] Seconds transfer(int index) const { return index < 0 ? Seconds(0.0) : transfers_[at_index(index)]; }

 private:
  /// Whole, or cut into pieces whose collectives are carried out beside or between them.
  [[nodiscard]] Seconds least(const Stretch& stretch) const;

  std::vector<Seconds> transfers_;  ///< what each takes this lane
  std::vector<PerPass<Seconds>> passes_;
};

}  // namespace foretrain

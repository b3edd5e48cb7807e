// Times that a step cannot fall below, from the times of its blocks: what each stage has to do, what it waits for
// before it can begin, and what is left to do when it has ended. None exceeds the time of the step's graph over an
// uncontended network.
#pragma once

#include <vector>

#include "model/parallelism/plan.hpp"
#include "model/training/step.hpp"

namespace foretrain {

/// One pass of each of the model's chunks, in model order, and the message from one stage to the next.
struct PassTimes {
  std::vector<Seconds> forward, backward;
  Seconds hop;
};

/// What of a step does not depend on what its passes take, but on the parameters alone: it is the same for all plans
/// that differ in micro-batches and recomputation.
struct StepEnds {
  struct Stage {
    Seconds gradients;  ///< collectives of gradients after the last micro-batch
    Seconds weights;    ///< collectives in the passes of each micro-batch, under ZeRO-3
    Seconds optimizer;
    /// The first of the equal parts in which updated weights are gathered: the others hide behind the next step's first
    /// pass as far as it reaches.
    Seconds first_gather;
  };
  std::vector<Stage> stages;
  Seconds after;  ///< norm, what happens once per step
  bool overlap = true;
};
StepEnds ends_of(const Step& step, const Plan& plan);

/// The passes of all micro-batches through a pipeline, and what follows where it is known. `times` may be below what
/// the passes take.
Seconds pipeline_bound(const Plan& plan, int micro_batches, const PassTimes& times, const StepEnds* ends = nullptr);

/// A whole step whose blocks are known: passes in their order, gradients, norm, optimizer, gathered weights.
Seconds step_bound(const Step& step);

}  // namespace foretrain

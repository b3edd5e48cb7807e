// Lower bounds of a step from the times of its blocks: the work of each stage, the wait before it can begin, and the
// rest after it ends. None exceeds the time of the step's graph over an uncontended network.
#pragma once

#include <vector>

#include "model/parallelism/plan.hpp"
#include "model/training/step/step.hpp"

namespace foretrain {

/// One pass of each of the model's chunks, in model order, the message from one stage to the next, and what follows.
struct PassTimes {
  std::vector<PerPass<Seconds>> passes;  ///< of the kinds that the schedule has; a pair takes no longer than its parts
  std::vector<Seconds> weights = {};     ///< under ZeRO-3: collectives of weights and their gradients in both passes
  std::vector<Seconds> updates = {};     ///< by stage; empty: unknown
  Seconds hop;
};
/// The least of all rank classes of a stage.
PassTimes pass_times(const Step& step);

/// The parts of a step that depend on the parameters alone, not on its passes: they are the same for all plans
/// that differ in micro-batches and recomputation.
struct StepEnds {
  struct Stage {
    std::vector<Seconds> gradients;  ///< by chunk: collectives of a micro-batch's gradients
    std::vector<Seconds> last_sent;  ///< by chunk: those that begin when its backward pass has ended
    Seconds weights;                 ///< collectives in the passes of each micro-batch, under ZeRO-3
    Seconds gathered;                ///< behind the update
    /// With gathers beside the next step's first pass: before it can begin, and before it can end.
    Seconds first_gather = Seconds::infinity(), first_gathers = Seconds::infinity();
  };
  std::vector<Stage> stages;
  Seconds after;  ///< norm, what happens once per step
  bool overlap = true;
  bool sync_each_micro_batch = false;  ///< gradients leave after each
};
StepEnds ends_of(const Step& step);

struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  int stages = 1, interleave = 1, micro_batches = 1;
};

/// The passes of all micro-batches through a pipeline, and what follows where it is known. `times` may be below what
/// the passes take.
Seconds pipeline_bound(const PipelineShape& shape, const PassTimes& times, const StepEnds* ends = nullptr);

/// A whole step whose blocks are known: passes in their order, gradients, norm, optimizer, gathered weights.
Seconds step_bound(const Step& step);

}  // namespace foretrain

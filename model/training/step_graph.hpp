// A training step as a task graph: every pass of every class of ranks, in the order in which the pipeline's schedule
// has its streams work.
#pragma once

#include <vector>

#include "model/graph/execution.hpp"
#include "model/training/step.hpp"

namespace foretrain {

struct StepGraph {
  /// Moments since the step began.
  struct Times {
    Seconds backward_done;      ///< the last stage to finish its last backward pass
    Seconds without_transfers;  ///< the same if activations moved between stages in no time: work and bubble alone
    Seconds synchronised;       ///< all gradients synchronised
    Seconds end;                ///< optimizer done, weights gathered
  };

  TaskGraph graph;
  std::vector<TaskId> last_backward;  ///< by lane
  TaskId synchronised = -1;           ///< all gradients of all stages are there
  std::vector<BlockId> hops;          ///< activations and their gradients between stages
};
StepGraph step_graph(const Step& step);

StepGraph::Times times_of(const StepGraph& step, const Execution& execution);

}  // namespace foretrain

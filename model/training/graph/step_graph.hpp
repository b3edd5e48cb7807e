// The step as tasks. In: a Step. Out: StepGraph, every pass of every rank class in the order in which the pipeline's
// schedule has its streams work, buckets and messages beside them, and the marks from which its outcome is read.
//
// Invariants: tasks refer to blocks (step_blocks.hpp), each of which is there once; which tasks there are depends on
// the step's shape alone. A rank class's passes follow each other on one stream.
#pragma once

#include <memory>
#include <vector>

#include "model/graph/execution.hpp"
#include "model/training/step/step.hpp"

namespace foretrain {

struct StepGraph {
  /// A part of one of the step's transfers, each time that it is carried out.
  struct Transfer {
    TaskId task = 0;
    int transfer = 0;  ///< into Step::transfers
    std::size_t part = 0;
  };

  /// Tasks of a rank class, for any execution.
  struct ClassTasks {
    std::vector<TaskId> works;   ///< on its compute stream, and its host's dispatching
    std::vector<TaskId> beside;  ///< awaited by all ranks, and kernels that compress its gradients
  };

  TaskGraph graph;
  std::vector<ResourceId> compute;  ///< by rank class
  std::shared_ptr<const std::vector<ClassTasks>> of_class;
  std::vector<Transfer> transfers;
  std::vector<TaskId> last_backward;  ///< by rank class
  TaskId synchronised = -1;           ///< all gradients of all stages are there
  std::vector<BlockId> arrivals;      ///< inputs of a pipeline's passes: activations, their gradients, updated weights
};
StepGraph step_graph(const Step& step);

}  // namespace foretrain

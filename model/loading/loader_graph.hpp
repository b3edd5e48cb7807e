// The input pipeline as tasks: worker processes, storage and cores that they share, and the training process that takes
// their batches in order. Queues are bounded by dependencies: a worker waits for its batch to be taken.
#pragma once

#include <vector>

#include "model/collectives/collective.hpp"
#include "model/cost/loader.hpp"
#include "model/graph/task_graph.hpp"

namespace foretrain {

struct LoaderGraph {
  TaskGraph graph;
  std::vector<TaskId> steps;  ///< the training process's step with each batch
  int settled = 0;            ///< batches after which the pipeline has come to its rhythm
};

/// Batch k is prepared by worker k mod n: it waits for storage, uses storage, then a core, and may begin when the
/// worker's previous batch is done and batch k - n · prefetch has been taken. A step takes `consumer` after its batch
/// has been copied; copies run beside the step before where the pipeline says so. Batches differ by
/// LoaderPipeline::spread. `copy` is what a copy moves (nothing: LoaderBatch::transfer as a fixed time).
LoaderGraph build_loader_graph(const LoaderPipeline& pipeline, Seconds consumer,
                               const LoweredCollective* copy = nullptr);

/// Time between two steps once the pipeline has come to its rhythm, over a whole number of rounds of all workers.
Seconds loader_interval(const LoaderGraph& graph, const Execution& execution);

/// What the estimate says: without spread the closed form, with spread an execution of the graph.
Seconds estimated_interval(const LoaderPipeline& pipeline, Seconds consumer);

}  // namespace foretrain

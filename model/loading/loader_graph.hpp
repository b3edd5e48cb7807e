// The input pipeline as tasks: worker processes, storage and cores that they share, and the training process that takes
// their batches in order. Queues are bounded by dependencies: a worker waits for its batch to be taken.
#pragma once

#include <vector>

#include "model/collectives/collective.hpp"
#include "model/cost/loader.hpp"
#include "model/graph/execution.hpp"

namespace foretrain {

struct LoaderGraph {
  TaskGraph graph;
  std::vector<TaskId> steps;  ///< the training process's step with each batch
  int settled = 0;            ///< batches after which the interval between steps has settled
};

/// Batch k is prepared by worker k mod n. It waits for storage, uses storage, then a core, and may begin when the
/// worker's previous batch is done and batch k - n · prefetch has been taken. A step takes `consumer` after its batch
/// has been copied; copies run beside the step before where the pipeline says so. Batches differ by
/// LoaderPipeline::spread. `copy` is what a copy moves (nothing: LoaderBatch::transfer as a fixed time).
LoaderGraph build_loader_graph(const LoaderPipeline& pipeline, Seconds consumer,
                               const LoweredCollective* copy = nullptr);

/// The graph that a fidelity runs. Without workers, and in an estimate of equal batches, it is a single step. That is
/// as long as the slowest part of the pipeline (loader_bounds), or the consumer's work on its own batch.
LoaderGraph build_loader_graph(const LoaderPipeline& pipeline, Seconds consumer, const LoweredCollective* copy,
                               Fidelity fidelity);

/// Time between two steps once it has settled, over a whole number of rounds of all workers.
Seconds loader_interval(const LoaderGraph& graph, const Execution& execution);

/// By the graph of Fidelity::estimate.
Seconds estimated_interval(const LoaderPipeline& pipeline, Seconds consumer);

}  // namespace foretrain

// The memory that a training step needs on one GPU.
#pragma once

#include "model/memory/memory_parts.hpp"
#include "model/memory/stage_memory.hpp"
#include "model/scenario/scenario.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// The peak of any GPU. Per parameter of the rank: weights at the training precision, gradients at
/// theirs, the optimizer's states (momentum 4 bytes, Adam 8, a master copy of 2-byte weights 4 more when asked for);
/// ZeRO-1/2/3 divide optimizer/gradients/weights by the data-parallel ranks (arXiv 1910.02054, figure 1). Frozen
/// parameters are weights alone. Activations: what each layer keeps, of every micro-batch in flight. Workspace: all
/// other parts of MemoryPart. `model` must have been built for this workload and plan.
MemoryFootprint memory_footprint(const Scenario& scenario, const TrainWorkload& train, const Model& model);

/// The same account moment by moment: its fullest moment is memory_footprint's. A step repeats itself, so a pipeline's
/// filling, some micro-batches of its steady state and its emptying are told.
MemoryTimeline memory_timeline(const Scenario& scenario, const TrainWorkload& train, const Model& model);

}  // namespace foretrain

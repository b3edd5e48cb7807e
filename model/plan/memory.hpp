// What a training step needs of one GPU's memory.
#pragma once

#include <string>
#include <vector>

#include "model/cost/calibration.hpp"
#include "model/result.hpp"
#include "model/scenario/scenario.hpp"
#include "model/workload/model.hpp"

namespace foretrain {

/// fp32 states that an optimizer keeps for each parameter: none, a momentum, or Adam's two moments.
Bytes optimizer_state(Optimizer optimizer);

/// The fullest GPU of the plan. Per parameter of the rank: weights at the training precision, gradients at theirs, the
/// optimizer's states in fp32 (momentum 4 bytes, Adam 8, a master copy of 2-byte weights 4 more when asked for);
/// ZeRO-1/2/3 divide optimizer/gradients/weights by the data-parallel ranks (arXiv 1910.02054, figure 1). Activations:
/// what each layer keeps × micro-batches in flight. Workspace: the largest layer's temporaries, gathered ZeRO-3 layers,
/// communication buckets, the framework's context and the allocator's fragmentation.
/// `model` must have been built for this workload and plan.
MemoryFootprint memory_footprint(const Scenario& scenario, const TrainWorkload& train, const Model& model);

/// For a plan that does not fit: which single changes (ZeRO level, recomputation, more replicas, smaller micro-batch)
/// would make it fit, in words with numbers; empty when it fits.
std::vector<std::string> remedies_for_memory(const Scenario& scenario, const TrainWorkload& train);

}  // namespace foretrain

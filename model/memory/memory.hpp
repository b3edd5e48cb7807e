// The memory that a training step needs on one GPU, changes that make it fit, and the cost of plans that may need more.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
/// filling, some micro-batches of its steady state and its emptying are reported.
MemoryTimeline memory_timeline(const Scenario& scenario, const TrainWorkload& train, const Model& model);

/// For a plan that does not fit: which single changes (recomputation, smaller micro-batch, offloading, ZeRO over the
/// replicas there are or over more GPUs) would make it fit, in words with numbers, fewest GPUs first, then adapters in
/// place of the weights. Empty when it fits.
std::vector<std::string> remedies_for_memory(const Scenario& scenario, const TrainWorkload& train);

/// The largest micro-batch with which the plan fits, with as many passes per step as it has; 0 where not even one
/// sample fits. Found by bisection: a footprint never falls when the micro-batch grows.
std::int64_t largest_micro_batch(const Scenario& scenario, const TrainWorkload& train);

/// Slowdown of a step that is short of memory, if it runs at all. The allocator gives all free blocks
/// back and asks for them again (PyTorch's cudaMalloc retries). 2.7 to 8.1 of the twelve such rows of
/// cases_nanotron_h100.csv, four in the middle.
inline constexpr double shortage_slowdown = 4.0;

/// The chance that a plan predicted to fill this share of its GPU's memory needs more than all of it, where predictions
/// are off by a standard deviation of `spread` (of the logarithm).
double chance_of_shortage(double filled, double spread);

/// Expected slowdown of a step that is short of memory with this probability.
inline double expected_slowdown(double chance) { return 1.0 + (shortage_slowdown - 1.0) * chance; }

/// The standard deviation of errors, as logarithms, of which nine of ten are no greater than this share.
double spread_of_shortfall(double shortfall);

}  // namespace foretrain

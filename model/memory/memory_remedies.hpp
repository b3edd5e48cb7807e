// Changes that make a training fit into its GPUs' memory, and the largest micro-batch that fits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/scenario/scenario.hpp"

namespace foretrain {

/// For a plan that does not fit: which single changes (recomputation, smaller micro-batch, offloading, ZeRO over the
/// replicas there are or over more GPUs) would make it fit, in words with numbers, fewest GPUs first, then adapters in
/// place of the weights. Empty when it fits.
std::vector<std::string> remedies_for_memory(const Scenario& scenario, const TrainWorkload& train);

/// The largest micro-batch with which the plan fits, with as many passes per step as it has; 0 where not even one
/// sample fits. Found by bisection: a footprint never falls when the micro-batch grows.
std::int64_t largest_micro_batch(const Scenario& scenario, const TrainWorkload& train);

}  // namespace foretrain

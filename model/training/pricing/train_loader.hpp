// The input pipeline of a training step.
#pragma once

#include <span>

#include "model/training/step/step.hpp"

namespace foretrain {

/// Costs the loader of every training process of a machine (of each kind; the slowest counts) and notes in the step
/// what it allows and what it takes. A process loads for one replica, or with Plan::single_process for all of a
/// machine.
void add_loader(Step& step, const DataLoader& loader, const Scenario& scenario, const TrainWorkload& train,
                const Topology& topology);

/// As its processes share a machine's loaders.
LoaderUse loader_use(const Scenario& scenario, const TrainWorkload& train);

/// A batch of `size` from host memory to each of the GPUs at once, which meet on the way.
LoweredCollective copies_to_devices(Bytes size, const Topology& topology, std::span<const int> gpus);

}  // namespace foretrain

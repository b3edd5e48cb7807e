// What a trainer's own code takes on the host.
#pragma once

#include "model/hardware/cluster.hpp"
#include "model/parallelism/plan.hpp"
#include "model/workload/training.hpp"

namespace foretrain {

/// For a block's pass: layer_dispatch, and peer_dispatch for each other tensor rank where stages lie on several nodes.
Seconds dispatch_of_trainer(const Plan& plan, const Cluster& cluster, const TrainWorkload& train);

}  // namespace foretrain

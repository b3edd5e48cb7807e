// What keeping a part of a training in host memory costs in time.
#pragma once

#include "model/training/pricing/layer_cost.hpp"

namespace foretrain {

/// Between each GPU's memory and its host's, while all GPUs of the node copy: a link's share of it, the narrowest on
/// the way.
BytesPerSecond offload_bandwidth(const Topology& topology);

/// Adds to a layer's price what its copies stick out of its kernels. Weights come in for the forward and for the
/// backward pass (one rank's share of them under ZeRO-3, the rest by gathering), what it keeps goes out in the forward
/// pass and comes back for the backward pass; a layer's copies run beside the kernels of its neighbour, which is alike.
void add_offload(LayerCost& cost, const Layer& layer, const Scenario& scenario, const TrainWorkload& train,
                 const Topology& topology);

/// The optimizer's part of the step when its states lie in host memory (ZeRO-Plan::Offload, arXiv 2101.06840):
/// gradients are copied out beside the backward pass of each micro-batch, the host's cores update (bound by their
/// memory, which the node's GPUs share), and weights are copied back while others are updated. `parameters` are those
/// that this GPU updates, `backward` is what its passes' copies hide behind.
Segment offloaded_optimizer(double parameters, Seconds backward, const Operator& update, const Scenario& scenario,
                            const TrainWorkload& train, const Topology& topology);

}  // namespace foretrain

// The time that offloading to host memory costs.
#pragma once

#include "model/training/pricing/layer_cost.hpp"

namespace foretrain {

/// Between each GPU's memory and its host's, while all GPUs of the node copy: a link's share of it, the narrowest on
/// the way.
BytesPerSecond offload_bandwidth(const Topology& topology);

/// Bandwidth between the threads of one process and host memory while all processes of the node copy. A thread has
/// its own rate (calibration, host.thread_gbps). All together have the chips'; on two sockets half of what they ask for
/// lies on the other one, as nothing binds processes to sockets. A process alone has one socket's: the thread that
/// first writes a buffer decides where it lies.
BytesPerSecond host_bandwidth(const Scenario& scenario);

/// Adds to a layer's price what its copies stick out of its kernels. Weights come in for the forward and for the
/// backward pass (one rank's share of them under ZeRO-3, the rest by gathering), what it keeps goes out in the forward
/// pass and comes back for the backward pass. A layer's copies run beside the kernels of its neighbour, which is alike.
/// Nothing runs beside weights in pageable memory: the copy waits for its stream, and the host for the copy (CUDA
/// Runtime API, API synchronization behavior).
void add_offload(LayerCost& cost, const Layer& layer, const Scenario& scenario, const TrainWorkload& train,
                 const Topology& topology);

/// The optimizer's part of the step when its states lie in host memory (ZeRO-Offload, arXiv 2101.06840): gradients are
/// copied out, the host's cores update, and weights are copied back behind that. `parameters` are those that this GPU
/// updates, `backward` is what the copies of gradients hide behind where collectives do, too.
TimeBreakdown offloaded_optimizer(double parameters, Seconds backward, const Scenario& scenario,
                                  const TrainWorkload& train, const Topology& topology);

/// Time of copying updated weights from the GPU back to the host.
Seconds weights_to_host(double parameters, const Scenario& scenario, const TrainWorkload& train,
                        const Topology& topology);

}  // namespace foretrain

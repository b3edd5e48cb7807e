// What an operator takes that runs by itself, over and over, as benchmarks measure it.
#pragma once

#include <vector>

#include "model/cost/operator_cost.hpp"
#include "model/workload/operator_alone.hpp"

namespace foretrain {

/// Time of each of workload.operators(), once.
///
/// launch: stream adds what a call in a loop takes beyond its kernel (HostConstants::loop_call_us).
///
/// clock: boost is a burst of three executions to warm up and six that count. Boards let chips draw `burst_power` times
/// their limit for `settle_ms`, then hold them to it at once; the speed is the average over the six.
/// Benchmarks of this kind rotate through copies of small operands, `rotated_mb` in all: what an L2 of size L holds of
/// a set of size s is taken to be (L/s)², all of it where s fits, and is read at the L2's bandwidth.
std::vector<OperatorCost> costs_alone(const OperatorWorkload& workload, const Gpu& gpu, const Calibration& calibration);

/// Their sum, once: the operator's own work and bound.
OperatorCost cost_alone(const OperatorWorkload& workload, const Gpu& gpu, const Calibration& calibration);

}  // namespace foretrain

// The cost of an operator on a device: time, work, traffic, and the bound.
#pragma once

#include <string_view>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/cost/calibration.hpp"
#include "model/hardware/gpu.hpp"
#include "model/workload/operator.hpp"
#include "model/workload/operator_alone.hpp"

namespace foretrain {

/// The bound of an operator's speed: arithmetic, traffic to memory, or neither (start-up and dependent steps).
enum class Bound { compute, memory, latency };

struct OperatorCost {
  Seconds device;  ///< from the start of its first kernel to the end of its last, launches hidden
  Flops flops;     ///< mathematical operations
  Bytes bytes;     ///< traffic to device memory: the least there is, of attention what its algorithm needs
  Bound bound = Bound::latency;
  int kernels = 0;  ///< host dispatches it needs
};

/// Prices one operator. With `fused` a compiler has merged it, where it is fusible, into the operator that produces its
/// input: it then launches nothing and pays only for traffic beyond that producer's.
OperatorCost operator_cost(const Operator& op, const Gpu& gpu, const Calibration& calibration, bool fused = false);

/// No execution can be faster: the least arithmetic known (Winograd's or Fourier's) at the peak rate, or the
/// traffic that the L2 cannot hold at the peak bandwidth, whichever is longer.
Seconds roofline(const Operator& op, const Gpu& gpu);

/// Time of each of workload.operators(), once.
///
/// launch: stream adds what a call takes beyond its kernels: of a library in a loop, for each; of a framework, which
/// memory-bound operators are, once, and the device is idle before (HostConstants::loop_call_us, framework_call_us).
///
/// clock: boost is a burst of three executions to warm up and six that count. Boards let chips draw `burst_power` times
/// their limit for `settle_ms`, then hold them to it at once; the speed is the average over the six.
///
/// Benchmarks rotate through copies of small operands, `rotated_mb` in all. What an L2 of size L holds of
/// a set of size s is taken to be (L/s)², all of it where s fits, and is read at the L2's bandwidth.
std::vector<OperatorCost> costs_alone(const OperatorWorkload& workload, const Gpu& gpu, const Calibration& calibration);

/// Their sum, once: the operator's own work and bound.
OperatorCost cost_alone(const OperatorWorkload& workload, const Gpu& gpu, const Calibration& calibration);

}  // namespace foretrain

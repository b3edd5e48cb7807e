// What an operator costs on a device: time, work, traffic, and what bounds it.
#pragma once

#include <string_view>

#include "model/base/quantity.hpp"
#include "model/cost/calibration.hpp"
#include "model/hardware/gpu.hpp"
#include "model/workload/operator.hpp"

namespace foretrain {

/// What keeps an operator from being faster: arithmetic, traffic to memory, or neither (start-up and dependent steps).
enum class Bound { compute, memory, latency };

struct OperatorCost {
  Seconds device;  ///< from the start of its first kernel to the end of its last, launches hidden
  Flops flops;     ///< what the mathematics takes
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

}  // namespace foretrain

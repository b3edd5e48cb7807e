// A processor in the place of an accelerator: a rank whose operators one thread of a framework does.
#pragma once

#include "model/base/quantity.hpp"

namespace foretrain {

/// What an eager framework reaches on one core. Rates of memory are those of the Gpu it stands in: `l2_cache` is the
/// last cache that the thread has, `l2_bandwidth` what plain loops move while their tensors lie there, and
/// `memory_bandwidth` what they move beyond it.
struct Processor {
  double share = 1.0;               ///< of the core's time that the rank gets; the rest it stands still
  Seconds dispatch;                 ///< of one operator, in and out of the framework; the thread does nothing else then
  FlopsPerSecond product_rate;      ///< matrix products in fp32
  FlopsPerSecond convolution_rate;  ///< forward, in fp32
  FlopsPerSecond convolution_gradient_rate;
  BytesPerSecond reorder_rate;  ///< convolutions: tensors to the layout that the kernels want, and back
  // Bytes read and written by loops that are slower than memory, wherever their tensors lie.
  BytesPerSecond norm_rate;  ///< norms and other sums
  BytesPerSecond norm_gradient_rate;
  BytesPerSecond transcendental_rate;  ///< exponentials: softmax, GELU, sigmoid
  BytesPerSecond pooling_rate;         ///< but the gradient of the maximum, which knows where it lay
  BytesPerSecond random_rate;          ///< dropout, a random number for each element
  BytesPerSecond transfer_rate;        ///< what the core sends or receives through TCP when it does nothing else
  Bytes process;                       ///< memory of the framework's process without tensors
  bool operator==(const Processor&) const = default;
};

}  // namespace foretrain

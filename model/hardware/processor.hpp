// A processor in the place of an accelerator: a rank whose operators one thread of a framework does.
#pragma once

#include "model/base/quantity.hpp"

namespace foretrain {

/// What an eager framework reaches on one core. Rates of memory are those of the Gpu it stands in: `l2_cache` is the
/// last cache that the thread has, `l2_bandwidth` what plain loops move while their tensors lie there, and
/// `memory_bandwidth` what they move beyond it.
struct Processor {
  double share = 1.0;           ///< of the core's time that the rank gets; the rest it stands still
  double spread = 0.0;          ///< standard deviation of such cores' speeds at a moment, over the mean
  Seconds dispatch;             ///< of one operator, in and out of the framework; the thread does nothing else then
  FlopsPerSecond product_rate;  ///< matrix products in fp32, once their operands are packed
  BytesPerSecond packing_rate = BytesPerSecond::infinity();  ///< operands of products and their results, on the way
  FlopsPerSecond convolution_rate;                           ///< forward, in fp32
  FlopsPerSecond convolution_gradient_rate;
  BytesPerSecond reorder_rate;  ///< convolutions: tensors to the layout that the kernels want, and back
  // Bytes read and written by loops that are slower than memory, wherever their tensors lie.
  BytesPerSecond norm_rate;  ///< norms and other sums
  BytesPerSecond norm_gradient_rate;
  BytesPerSecond transcendental_rate;  ///< exponentials: softmax, GELU, sigmoid
  BytesPerSecond pooling_rate;         ///< but the gradient of the maximum, which knows where it lay
  BytesPerSecond random_rate;          ///< dropout, a random number for each element
  BytesPerSecond conversion_rate;      ///< fp32 to two bytes, divided there by the number of ranks
  BytesPerSecond fresh_rate;           ///< results for which the C library asks the system every time
  BytesPerSecond transfer_rate;        ///< what the core sends or receives through TCP when it does nothing else
  Seconds message;                     ///< of the core's time for each message that Gloo sends or receives
  Seconds wake;                        ///< until a core that waits for a message notices that it has come
  Seconds after_wait;                  ///< by which a core that has waited computes longer: its caches are cold
  Seconds all_reduce;                  ///< what one of Gloo's collectives takes beside its bytes and messages
  BytesPerSecond sum_rate;             ///< of what it sends: received, added up and copied while no card is busy
  BytesPerSecond narrow_sum_rate;      ///< the same of numbers of two bytes
  Bytes process;                       ///< memory of the framework's process without tensors
  bool operator==(const Processor&) const = default;
};

}  // namespace foretrain

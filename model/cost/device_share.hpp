// The share of a device that one kernel takes, and the sharing between kernels of several streams.
#pragma once

#include <span>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/cost/calibration.hpp"
#include "model/hardware/gpu.hpp"
#include "model/workload/operator.hpp"

namespace foretrain {

/// Shares of a device, 0 to 1, that an uncontended kernel takes on average.
struct DeviceShare {
  double multiprocessors = 1.0;
  double bandwidth = 0.0;  ///< to device memory

  bool operator==(const DeviceShare&) const = default;
};

/// A kernel's share from its shape and its uncontended time.
///
/// Thread blocks B over multiprocessors S: a product has one block for 64 × 64 results (a convolution likewise, as an
/// implicit product), attention one for 128 queries of a head, a memory-bound kernel one for 32 KiB (what keeps a
/// multiprocessor's share of the memory busy). While the kernel starts and drains, it holds no multiprocessor:
///   multiprocessors = max(min(1, B / S) · (time − fixed) / time, arithmetic / (peak rate · time))
///   bandwidth       = least traffic / (achieved bandwidth · time)
/// The second term keeps kernels that run together below the device's peak, however they were cut into blocks.
DeviceShare device_share(const Operator& op, Seconds time, const Gpu& gpu, const Calibration& calibration);

/// Speeds, as shares of the uncontended one, of kernels that run at the same time: all rise together until the
/// multiprocessors or the memory bandwidth are used up. Kernels that need what is used up stay there, the others rise
/// on (max–min fairness). Exactly 1 for all where there is enough for all.
std::vector<double> shared_speeds(std::span<const DeviceShare> kernels);

}  // namespace foretrain

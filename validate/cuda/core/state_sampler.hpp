// State of a GPU during a measurement.
#pragma once

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "validate/cuda/core/nvml.hpp"

namespace foretrain::gpu {

/// Asks NVML every 20 ms from a thread of its own, from construction until finish() or destruction.
class StateSampler {
 public:
  StateSampler(const Nvml& nvml, std::string bus_id);
  StateSampler(const StateSampler&) = delete;
  StateSampler& operator=(const StateSampler&) = delete;
  /// The median clock, the mean power, and every reason for lower clocks that any sample named. What was shorter than
  /// the first interval is asked about once, now. Nothing where NVML does not answer.
  std::optional<DeviceState> finish();

 private:
  const Nvml& nvml_;
  std::string bus_id_;
  double start_;  ///< on now()'s clock
  std::optional<double> energy_at_start_;
  std::vector<DeviceState> samples_;
  std::jthread thread_;  ///< the last member: it ends before what it uses
};

}  // namespace foretrain::gpu

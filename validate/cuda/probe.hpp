// What a machine with GPUs is made of.
#pragma once

#include <string>
#include <vector>

#include "validate/cuda/core/nvml.hpp"

namespace foretrain::gpu {

struct Machine {
  /// One object; `identity` is what must be the same for a run to go on: GPUs, driver and runtime in one line.
  std::string json;
  std::vector<std::string> warnings;  ///< why measurements may not be what they should be
};

/// Asks CUDA, its libraries, NVML and the operating system. Throws GpuError with Fault::unavailable, and what to do,
/// when there is no driver, too old a driver, or no GPU.
Machine probe_machine(const Nvml& nvml);

}  // namespace foretrain::gpu

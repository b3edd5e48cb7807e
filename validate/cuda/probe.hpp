// Description of a machine with GPUs.
#pragma once

#include <string>

namespace foretrain::gpu {

struct Machine {
  /// One object; `identity` is what must be the same for a run to go on: GPUs, driver and runtime in one line.
  std::string json;
  int gpus = 0;
  int capability = 0;  ///< of the first one, as 90 for 9.0
};

/// Asks CUDA, its libraries, NVML and the operating system, in a copy of this process; what may spoil measurements is
/// said on standard error. Throws GpuError with Fault::unavailable, and what to do, when there is no driver, too old a
/// driver, or no GPU that runs a kernel.
Machine probe_in_child();

}  // namespace foretrain::gpu

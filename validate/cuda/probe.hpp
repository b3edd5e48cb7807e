// What a machine with GPUs is made of.
#pragma once

#include <string>
#include <vector>

#include "validate/cuda/core/nvml.hpp"

namespace foretrain::gpu {

struct Machine {
  int gpus = 0;
  std::string identity;  ///< GPUs, driver and runtime in one line: what must be the same for a run to go on
  std::vector<std::string> warnings;  ///< why measurements may not be what they should be
  std::string json;                   ///< one object, with all of the above
};

/// Asks CUDA, its libraries, NVML and the operating system. Throws GpuError with Fault::unavailable, and what to do,
/// when there is no driver, too old a driver, or no GPU. `measured_device` is the one that suites run on.
Machine probe_machine(const Nvml& nvml, int measured_device);

/// Makes a context on this GPU and runs a kernel there. Throws GpuError: in use by someone else, no code for it, ….
void try_device(int device);

}  // namespace foretrain::gpu

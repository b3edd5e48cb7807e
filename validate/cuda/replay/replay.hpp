// An exported task graph, run on the GPUs of this machine.
#pragma once

#include "validate/cuda/core/nvml.hpp"
#include "validate/measure/sampling.hpp"
#include "validate/replay/graph.hpp"
#include "validate/replay/result.hpp"

namespace foretrain::gpu {

/// Runs the graph's step until its time is known: `result` gets step samples, times of tasks and of the operators
/// within them, launch times, memory, and the first GPU's state. Steps are timed without events between tasks; tasks
/// and operators in further steps, with them. Throws GpuError and Interrupted.
replay::Result run_replay(const replay::Graph& graph, bool quick, const Nvml& nvml);

}  // namespace foretrain::gpu

// The host's side of launching work.
#pragma once

#include "model/base/quantity.hpp"
#include "model/cost/calibration.hpp"

namespace foretrain {

/// Who launches kernels: a framework operator by operator, compiled code with elementwise work fused, or the device
/// itself from a recorded graph.
enum class ExecutionMode { eager, compiled, cuda_graph };

/// Time that the host thread is busy to launch `kernels` kernels: per kernel in eager and compiled execution, once for
/// a whole CUDA graph. The device idles where this is longer than the kernels themselves.
Seconds host_dispatch_time(int kernels, ExecutionMode mode, const HostConstants& constants);

/// From the submission of a kernel to its start on an idle device.
Seconds launch_latency(const HostConstants& constants);

/// From the device's last kernel to the host thread that has waited for it.
Seconds synchronize_time(const HostConstants& constants);

}  // namespace foretrain

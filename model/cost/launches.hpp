// Kernel launches of a list of operators: eager, compiled or as a CUDA graph.
#pragma once

#include <string>
#include <vector>

#include "model/cost/calibration.hpp"
#include "model/cost/device_share.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/hardware/gpu.hpp"
#include "model/workload/operator.hpp"

namespace foretrain {

/// The launcher of kernels: a framework operator by operator, compiled code with elementwise work fused, or the device
/// itself from a recorded graph.
enum class ExecutionMode { eager, compiled, cuda_graph };

/// Parts of a layer that eager execution launches as one graph each (key plan.graphed_parts). Experts are none of them:
/// how many tokens each has is known on the device alone.
enum class GraphedParts { none, attention, router, attention_and_router };

/// Time that the host thread is busy to launch `kernels` kernels: per kernel in eager and compiled execution, once for
/// a whole CUDA graph. The device idles where this is longer than the kernels themselves.
Seconds host_dispatch_time(int kernels, ExecutionMode mode, const HostConstants& constants);

/// From the submission of a kernel to its start on an idle device.
Seconds launch_latency(const HostConstants& constants);

/// From the device's last kernel to the host thread that has waited for it.
Seconds synchronize_time(const HostConstants& constants);

struct Launch {
  std::string name;  ///< its operator's, and behind it those that are fused into it
  Seconds device;    ///< uncontended
  DeviceShare share;
  Bytes written;  ///< its result
  /// Its operators by index into the planned list: its own, then those fused into it.
  std::vector<int> operators;
  int part = 0, parts = 1;  ///< an operator may take several kernels
};

struct LaunchPlan {
  std::vector<Launch> launches;
  Seconds host;         ///< the host thread's time for all of them
  Seconds device;       ///< the kernels one after the other
  Bytes intermediates;  ///< results in device memory that only further kernels of the list read
  int operators = 0;
  int fused = 0;   ///< operators that another one's kernel does as well
  int folded = 0;  ///< operators done once and for all when the code was compiled
};

/// An operator's cost as one of a list that is launched in this way; `fused`: into the one before it, where it can be.
OperatorCost launched_cost(const Operator& op, ExecutionMode mode, bool fused, const Gpu& gpu,
                           const Calibration& calibration);

/// Whether a compiler does the operator in the kernel of the one before it.
bool joins(const Operator& op, const Operator& before);

/// Execution of a list of operators, each of which reads what the one before it wrote.
///
/// eager: one launch for each kernel of each operator; every result is written to device memory.
/// compiled: an elementwise operator is done in the kernel of the one before it, unless that is a library's, before its
/// result is written. What the two would have handed over is never in memory. With `constant_weights` (no training)
/// operators that read nothing but weights are folded away. cuda_graph: the kernels of eager execution, launched as one
/// graph. Elsewhere a kernel's time includes the gap to the next one, HostConstants::launch_gap_us, which nodes of a
/// graph do not have.
LaunchPlan plan_launches(const std::vector<Operator>& ops, ExecutionMode mode, bool constant_weights, const Gpu& gpu,
                         const Calibration& calibration);

/// A kernel for each result, which writes over all of it before the operator does (PyTorch,
/// torch.utils.deterministic.fill_uninitialized_memory).
Operator filling(const std::vector<Operator>& ops);

/// Host and device time of plan_launches, added up without its list, for one of many layers. An elementwise operator at
/// the beginning of a layer is fused into the end of the layer before, and a graph, which holds all layers, is launched
/// elsewhere.
struct LaunchTotals {
  Seconds host, device;
  int kernels = 0;  ///< that are launched by themselves
};
LaunchTotals launch_totals(const std::vector<Operator>& ops, ExecutionMode mode, GraphedParts graphed, const Gpu& gpu,
                           const Calibration& calibration);

}  // namespace foretrain

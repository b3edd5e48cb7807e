#include "model/cost/host.hpp"

namespace foretrain {

Seconds host_dispatch_time(int kernels, ExecutionMode mode, const HostConstants& constants) {
  if (kernels <= 0) return Seconds(0);
  switch (mode) {
    case ExecutionMode::eager:
      return Seconds(constants.dispatch_us * 1e-6) * kernels;
    case ExecutionMode::compiled:
      return Seconds(constants.compiled_dispatch_us * 1e-6) * kernels;
    case ExecutionMode::cuda_graph:
      break;
  }
  return Seconds(constants.graph_launch_us * 1e-6);
}

Seconds launch_latency(const HostConstants& constants) { return Seconds(constants.launch_latency_us * 1e-6); }

Seconds synchronize_time(const HostConstants& constants) { return Seconds(constants.synchronize_us * 1e-6); }

}  // namespace foretrain

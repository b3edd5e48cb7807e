// What a trace of PyTorch's profiler says of a training's steps: which kernels ran on the device, and how long.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"

namespace foretrain {

/// Kinds of kernels, in the order of reports.
enum class KernelKind {
  matmul,
  attention,
  convolution,
  elementwise,
  reduction,
  gather,
  optimizer,
  communication,
  copy
};

struct TracedKernels {
  Seconds time;      ///< of one step
  double count = 0;  ///< in one step
};

struct KinetoSummary {
  int steps = 1;
  bool steps_marked = false;  ///< by the profiler's schedule (ProfilerStep#…); else the trace counts as one step
  bool on_device = false;     ///< kernels of a GPU; else operators of a processor, without those inside them
  int devices = 1;            ///< the first of which is summarised
  Seconds step;
  std::map<KernelKind, TracedKernels> kernels;
  Seconds exposed_communication;  ///< of one step: nothing else runs
  Seconds idle;                   ///< of one step
};

/// Throws ScenarioError for what is no trace, or has neither kernels nor operators. `file` is named in errors.
KinetoSummary summarise_kineto(const std::string& text, const std::string& file);

}  // namespace foretrain

// Steps of a training in a trace of PyTorch's profiler: kernels on the device, with their times.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/base/quantity.hpp"
#include "model/result.hpp"
#include "model/scenario/scenario.hpp"

namespace foretrain {

/// Kinds of kernels, in the order of reports.
enum class KernelKind {
  matmul,
  attention,
  convolution,
  normalisation,
  elementwise,
  reduction,
  gather,
  optimizer,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  p2p,
  communication,  ///< of other kinds
  copy,
  other  ///< by a name that kernel_names.def does not have
};
constexpr bool is_communication(KernelKind kind) {
  return kind >= KernelKind::all_reduce && kind <= KernelKind::communication;
}

struct TracedKernels {
  Seconds time;
  double count = 0;
  Seconds alone = {};  ///< in which nothing of more weight runs: kernels before collectives before copies
};

/// Why no kernel runs, of one step.
struct IdleTime {
  Seconds host;        ///< the next kernel was launched too late
  Seconds loader;      ///< the host waited for the data loader
  Seconds dependency;  ///< the next kernel was launched in time
  Seconds unknown;     ///< the trace has no launches
  [[nodiscard]] Seconds total() const { return host + loader + dependency + unknown; }
};

struct TracedCollective {
  KernelKind kind = KernelKind::communication;
  Bytes size;                      ///< as nccl-tests counts it; 0: the trace does not say it
  int ranks = 0;                   ///< of its group; 0: not said
  std::string group, group_ranks;  ///< of one process group; "[0, 8]" or empty
  Seconds time;                    ///< with waiting for other ranks
};

struct KinetoSummary {
  int steps = 1;
  bool steps_marked = false;  ///< by the profiler's schedule (ProfilerStep#…); else the trace counts as one step
  bool on_device = false;     ///< kernels of a GPU; else operators of a processor, without those inside them
  int devices = 1;            ///< the first of which is summarised
  bool step_known = true;     ///< else its kernels alone, and there is no idle time
  Seconds step;
  std::map<KernelKind, TracedKernels> kernels;
  Seconds exposed_communication;  ///< of one step: nothing else runs
  Seconds idle;                   ///< of one step
  IdleTime idle_by;
  std::vector<TracedCollective> collectives;  ///< of all steps, in their order
};

/// Throws ScenarioError for what is no trace, or has neither kernels nor operators. `file` is named in errors.
KinetoSummary summarise_kineto(const std::string& text, const std::string& file);

/// A step as predicted, in the kinds of a profiler's trace.
struct PredictedStep {
  std::string scenario;
  std::map<KernelKind, TracedKernels> kernels;  ///< of the first pipeline stage's ranks
  Result result;                                ///< of the training
};

/// Throws ScenarioError where nothing is trained, and as predict().
PredictedStep predicted_kernels(const Scenario& scenario, Fidelity fidelity);

}  // namespace foretrain

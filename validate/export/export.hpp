// From a scenario to the task graph that a machine with GPUs runs.
#pragma once

#include <stdexcept>
#include <string>

#include "model/base/work.hpp"
#include "model/job/job.hpp"
#include "model/workload/operator.hpp"
#include "validate/replay/graph.hpp"

namespace foretrain {

/// Throws ScenarioError at the key that cannot be replayed on the GPUs of one machine, saying what can: tasks of one
/// host thread, an operator, an all-reduce, or training that is data parallel alone, without loader.
void check_gpu_replay(const Scenario& scenario);

/// The job's graph as a file holds it, of a job that keeps recipes. Of training it is the step from its first forward
/// pass to its optimizer with the host thread that dispatches it and what that does between steps. A
/// step that is one CUDA graph is without either. `name` is what files are called after; `execution`
/// is the prediction.
/// Throws ScenarioError for work that has no kernels.
replay::Graph exported(const Scenario& scenario, const std::string& name, const TaskGraph& graph,
                       const Execution& execution, Fidelity fidelity);

/// Of that the host thread. Puts a dispatch before each task that launches kernels, as long as the model's: that of the
/// block's launches, or the block itself where it outlasts its kernels; and at the end what the host does between
/// steps, which the prediction then includes. Nothing for a step that is launched as one CUDA graph.
void add_host_thread(const Scenario& scenario, replay::Graph& graph);

/// Some operators have no kernels to run them, or no keys that say enough: packed sequences, probes of memory.
class NotReplayable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Launched once, without its prediction. A streaming operator, of which the model knows the bytes alone, becomes
/// `traffic` { read, written, flops }; all others read back as the same operator
/// (model/scenario/workload/operator_workload_reader.cpp), names apart. Throws NotReplayable.
KernelWork stated(const Operator& op);

}  // namespace foretrain

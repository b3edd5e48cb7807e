// A process's part of a training step: its tasks, each when those that it waits for are done.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "validate/host_replay/worker_task.hpp"

namespace foretrain {

/// When a task ran, in seconds.
struct TaskSpan {
  double start = 0.0, end = 0.0;
};

/// A task that computes lets its time pass: what computes is no part of these hosts, whose own cores are shared by all
/// and carry messages alone.
class StepRunner {
 public:
  using Carry = std::function<void(const StepTask& exchange)>;
  /// `carry` takes part in an exchange; called from the thread of the task's stream. Without a step, and on servers,
  /// that is all.
  StepRunner(const WorkerTask& task, int process, Carry carry);

  /// One step. Throws what `carry` throws.
  void run();
  /// Leaves the tasks' moments in the task's folder: of each step after warm-up, on the clock that processes share.
  void write() const;

 private:
  const WorkerTask& task_;
  int process_;
  Carry carry_;
  std::vector<std::vector<TaskSpan>> repetitions_;
};

/// By rank, from what StepRunner::write() left (nothing of a process that had no step): the medians of all steps, each
/// counted from when its first task began on any rank, so that what waits for another rank's task ends after that.
std::vector<std::vector<TaskSpan>> read_spans(const std::string& folder, int ranks);

}  // namespace foretrain

// A process's part of a training step: its tasks, each when those that it waits for are done.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "validate/host_replay/worker_task.hpp"

namespace foretrain {

/// When a task ran, in seconds since its step began in the same process.
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
  /// Leaves the tasks' moments in the task's folder: medians of the steps after warm-up.
  void write() const;

 private:
  const WorkerTask& task_;
  int process_;
  Carry carry_;
  std::vector<std::vector<TaskSpan>> repetitions_;
};

/// What StepRunner::write() left of one process; nothing where it had no step.
std::vector<TaskSpan> read_spans(const std::string& folder, int process);

}  // namespace foretrain

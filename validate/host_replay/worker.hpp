// A process of a replay: all of them start together, repeat, and report their times.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/base/process.hpp"
#include "validate/host_replay/worker_task.hpp"

namespace foretrain {

/// Of now(). Lets the time pass until then.
void sleep_until(double moment);

/// All processes of a task wait for each other here, in memory that they share as copies of the process which made it.
/// No byte of it crosses the network that is measured.
class ProcessBarrier {
 public:
  explicit ProcessBarrier(int processes);
  /// Returns when all have come. The caller that started the processes ends them where one does not come.
  void wait();
  /// Ends this process, which has failed; where it is the first one, with its number and the reason for failure().
  [[noreturn]] void fail(int process, const std::string& why);
  /// The first process that failed and why; nothing when none did.
  [[nodiscard]] std::optional<std::pair<int, std::string>> failure() const;

 private:
  struct Shared;
  SharedMemory memory_;
  Shared& shared_;
};

struct WorkerTimes {
  std::vector<double> seconds;  ///< of each repetition
  double busy = 0.0;            ///< share of all processors' time that was not idle; process 0 only
  /// By repetition, on the clock that processes share: when its tasks ran.
  std::vector<std::vector<TaskSpan>> spans = {};
};

/// One process's part of steps: its tasks, each when those that it waits for are done. A task that computes lets its
/// time pass: what computes is no part of these hosts, whose own cores are shared by all and carry messages alone.
/// `carry` takes part in an exchange; called from the thread of the task's stream. Throws what `carry` throws.
std::vector<TaskSpan> run_step(const std::vector<StepTask>& tasks, const std::function<void(const StepTask&)>& carry);

/// The part of one process, after warm-up and as often as the task says: its messages of the task's exchanges, over
/// TCP, or values that ranks add up by them. Within a phase all messages move at the same time, those between the same
/// two processes one after the other. A process goes on to the next phase when its own are done. Throws
/// std::runtime_error where a sum is wrong.
WorkerTimes run_exchanges(const WorkerTask& task, int process, ProcessBarrier& barrier);

}  // namespace foretrain

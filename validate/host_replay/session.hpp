// The worker's side of a measurement, the same for every executor: all processes start together, repeat, and each
// leaves its times in a file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "validate/host_replay/task.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain {

/// Where all processes of a task meet, in memory shared through a file of the task's folder: no byte of it crosses the
/// network that is measured.
class MeetingPoint {
 public:
  /// The launcher makes it before the processes start. Throws std::system_error.
  static void make(const std::string& folder);
  /// Throws std::system_error when there is none.
  MeetingPoint(const std::string& folder, int processes, double timeout);
  ~MeetingPoint();
  MeetingPoint(const MeetingPoint&) = delete;
  MeetingPoint& operator=(const MeetingPoint&) = delete;

  /// Returns when all have come. Throws std::runtime_error when one of them failed, or after the timeout.
  void wait();
  /// Tells the others, so that none waits for this process.
  void fail() noexcept;

 private:
  struct Shared;
  Shared* shared_ = nullptr;
  unsigned processes_;
  double deadline_;  ///< on the monotonic clock, seconds
};

/// One thing to be timed: what is done before each repetition without being timed, and the work itself.
struct Timed {
  std::function<void()> prepare;
  std::function<void()> work;
  std::function<void()> check;  ///< after the first and the last repetition; throws when the result is wrong
};

/// Warm-up and repetitions with a barrier before each; writes folder/times-PROCESS.json. Process 0 also notes how busy
/// the machine's processors were.
void measure(const HostTask& task, int process, MeetingPoint& meeting, const Timed& timed);

/// What measure() left of one process.
struct ProcessTimes {
  std::vector<double> seconds;  ///< of each repetition
  double busy = 0.0;            ///< share of all processors' time, process 0 only
};
/// Throws std::runtime_error when the process left nothing.
ProcessTimes read_times(const std::string& folder, int process);

/// The whole life of a worker: `folder` as its first argument, its number as the second. Returns the exit status,
/// having said on stderr what went wrong.
int run_worker(const std::string& folder, int process,
               const std::function<void(const HostTask&, int process, MeetingPoint&)>& work);

/// Throws std::runtime_error naming the first wrong value.
void check_sums(const HostTask& task, const std::vector<float>& values);

}  // namespace foretrain

// What a worker process does: all processes of a task start together, repeat, and each leaves its times in a file. The
// same for every executor; and the project's own three executors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "validate/host_replay/worker_task.hpp"
#include "validate/measure/clock.hpp"

namespace foretrain {

/// All processes of a task wait for each other here, in memory shared through a file of the task's folder: no byte of
/// it crosses the network that is measured.
class ProcessBarrier {
 public:
  /// The program that starts the processes makes it first. Throws std::system_error.
  static void make(const std::string& folder);
  /// Throws std::system_error when there is none.
  ProcessBarrier(const std::string& folder, int processes, double timeout);
  ~ProcessBarrier();
  ProcessBarrier(const ProcessBarrier&) = delete;
  ProcessBarrier& operator=(const ProcessBarrier&) = delete;

  /// Returns when all have come. Throws std::runtime_error when one of them failed, or after the timeout.
  void wait();
  /// Tells the other processes, so that none waits for this one.
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
void measure(const WorkerTask& task, int process, ProcessBarrier& barrier, const Timed& timed);

/// What measure() left of one process.
struct ProcessTimes {
  std::vector<double> seconds;  ///< of each repetition
  double busy = 0.0;            ///< share of all processors' time, process 0 only
};
/// Throws std::runtime_error when the process left nothing.
ProcessTimes read_times(const std::string& folder, int process);

/// The `main` of a worker: reads the task from `folder`, does `work`. Returns the exit status, having said on stderr
/// what went wrong.
int run_worker(const std::string& folder, int process,
               const std::function<void(const WorkerTask&, int process, ProcessBarrier&)>& work);

/// One participant's part of the project's own schedule over TCP: connects, then measures. Within a phase all of its
/// transfers run at the same time; it goes on to the next phase when its own are done, as the schedule's meaning allows
/// (phases depend on earlier phases only).
void run_schedule(const WorkerTask& task, int process, ProcessBarrier& barrier);

/// One rank's part of a step: its tasks, and its messages of their exchanges over TCP. Nothing is added up: bytes move.
/// Each message is checked to be the one expected.
void run_exchanges(const WorkerTask& task, int process, ProcessBarrier& barrier);

/// One participant's part of the project's parameter server, a key-value store over TCP with push and pull: ranks are
/// workers, the others servers.
///
/// The message is cut into keys; key k lives on server k mod servers. A worker pushes key after key and asks for each
/// at once; the server adds up what the workers push and answers when all of them have, or with a bound when none is
/// further behind than that. With one key per server, pulls begin when all pushes have ended, as in the schedule
/// parameter_server; with several, they overlap. Source of the interface: Li et al., "Scaling distributed machine
/// learning with the parameter server", OSDI 2014.
void run_key_value(const WorkerTask& task, int process, ProcessBarrier& barrier);

/// What a message costs, in latency and in bytes on the wire: between participants 0 and 1, `keys` messages of
/// `elements` bytes, by the task's algorithm:
/// `probe_round_trip`: there and back over TCP, one after the other;
/// `probe_tcp`: one way over TCP, as one stream, answered by one byte at the end;
/// `probe_udp`: one way over UDP, cut into datagrams, every 50 of which are answered by one byte.
void run_probe(const WorkerTask& task, int process, ProcessBarrier& barrier);

/// Throws std::runtime_error naming the first wrong value.
void check_sums(const WorkerTask& task, const std::vector<float>& values);

}  // namespace foretrain

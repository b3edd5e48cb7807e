// Starts a task's processes on the hosts of a lab, waits for them, and collects what they measured.
#pragma once

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "validate/host_replay/namespaces.hpp"
#include "validate/host_replay/worker_step.hpp"
#include "validate/host_replay/worker_task.hpp"

namespace foretrain {

/// A process crashed, hung or computed a wrong sum: says which, on which host, and what it wrote to stderr.
class ReplayError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The program of each executor; empty where it was not built.
using HostPrograms = std::map<HostExecutor, std::filesystem::path>;
/// Those beside the program `foretrain`, or in FORETRAIN_HOST_PROGRAMS. Throws UsageError when the project's own is
/// missing.
HostPrograms find_host_programs();

/// Traffic from one host to another that goes on while a task runs: UDP datagrams at a steady rate, or one TCP
/// connection as fast as it goes.
struct BackgroundTraffic {
  int from = 0, to = 0;
  BytesPerSecond rate;  ///< on the wire, headers included; zero: TCP
};

struct Samples {
  std::vector<double> seconds;                    ///< per repetition: the slowest process's
  double busy = 0.0;                              ///< share of all processors' time that was not idle
  std::vector<std::vector<TaskSpan>> spans = {};  ///< by rank: of its step's tasks
};

/// Runs one task: `task.folder` is filled in here (a folder under TMPDIR that goes away). Throws ReplayError,
/// Interrupted, or UsageError when the executor was not built.
Samples run_workers(const HostLab& lab, const HostPrograms& programs, WorkerTask task,
                    const std::vector<BackgroundTraffic>& background = {});

}  // namespace foretrain

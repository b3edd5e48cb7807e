// Scenarios run for real, one after the other, on hosts that are kept as long as their number stays the same.
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "validate/host_replay/measurements.hpp"
#include "validate/host_replay/worker.hpp"

namespace foretrain {

/// A process crashed, hung or computed a wrong sum: says which, on which host, and why.
class ReplayError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Samples {
  std::vector<double> seconds;               ///< per repetition: the slowest process's
  double busy = 0.0;                         ///< share of all processors' time that was not idle
  std::vector<std::vector<TaskSpan>> spans;  ///< by process, as medians_of() has them
};

/// Medians of each process's tasks over all repetitions. Each counts from the first task on any process, so that a
/// waiting task ends after the one that it waits for.
std::vector<std::vector<TaskSpan>> medians_of(const std::vector<WorkerTimes>& times);

/// Runs one task, each process as a copy of this one, which must have a single thread. Throws ReplayError or
/// Interrupted.
Samples run_workers(const HostLab& lab, const WorkerTask& task, const std::vector<BackgroundTraffic>& background = {});

class HostReplayer {
 public:
  /// Throws UsageError saying why this machine cannot have hosts.
  HostReplayer();

  /// Throws ReplayError, Interrupted, UsageError. Fills in everything but name, group and prediction.
  HostMeasurement run(const ReplayPlan& plan);

 private:
  const HostLab& lab_for(const std::vector<HostRate>& hosts, const Uplinks& uplinks);

  std::unique_ptr<HostLab> lab_;
};

}  // namespace foretrain

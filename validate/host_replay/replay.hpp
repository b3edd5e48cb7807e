// Scenarios run for real, one after the other, on hosts that are kept as long as their number stays the same.
#pragma once

#include <memory>
#include <string>

#include "validate/host_replay/measurements.hpp"

namespace foretrain {

class HostReplayer {
 public:
  /// Throws UsageError saying why this machine cannot have hosts.
  HostReplayer();

  /// Throws ReplayError, Interrupted, UsageError. Fills in everything but name, group and prediction.
  HostMeasurement run(const ReplayPlan& plan);
  /// A message between two hosts, as run_probe() has it. Segments are not joined when bytes are counted.
  ProbeMeasurement probe(const std::string& protocol, Bytes payload, BytesPerSecond rate);

 private:
  const HostLab& lab_for(const std::vector<HostRate>& hosts, const Uplinks& uplinks);

  HostPrograms programs_;
  std::unique_ptr<HostLab> lab_;
};

}  // namespace foretrain

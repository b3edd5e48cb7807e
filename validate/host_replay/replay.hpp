// Scenarios run for real, one after the other, on hosts that are kept as long as their number stays the same.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "validate/host_replay/measurements.hpp"

namespace foretrain {

class HostReplayer {
 public:
  /// Throws UsageError saying why this machine cannot have hosts.
  HostReplayer();

  /// Throws ReplayError, Interrupted, UsageError. Fills in everything but name, group and prediction.
  HostMeasurement run(const ReplayPlan& plan);
  /// When each task of the last run ran; nothing where its plan has no graph.
  [[nodiscard]] const std::optional<Execution>& execution() const { return execution_; }
  /// A message between two hosts, as run_probe() has it. Segments are not joined when bytes are counted.
  ProbeMeasurement probe(const std::string& protocol, Bytes payload, BytesPerSecond rate);

 private:
  const HostLab& lab_for(const std::vector<HostRate>& hosts, const Uplinks& uplinks);

  HostPrograms programs_;
  std::unique_ptr<HostLab> lab_;
  std::optional<Execution> execution_;
};

}  // namespace foretrain

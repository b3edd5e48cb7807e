// What a prediction says: plain values. Printing happens in reports/.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/quantity.hpp"

namespace foretrain {

enum class Fidelity { estimate, flows, steps };

/// Adds up to the step.
struct Breakdown {
  Seconds compute, exposed_communication, pipeline_bubble, data_stall, host_overhead, optimizer;
  [[nodiscard]] Seconds total() const {
    return compute + exposed_communication + pipeline_bubble + data_stall + host_overhead + optimizer;
  }
};

struct CommunicationTime {
  Seconds total;
  Seconds exposed;
};

/// Time of synchronisation over time of computation: 2·model/(bandwidth·batch·FLOPs), and as predicted.
struct CommunicationRatio {
  double formula = 0.0;
  double simulated = 0.0;
};

struct MemoryFootprint {
  Bytes weights, gradients, optimizer, activations, workspace;
  Bytes capacity;
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + workspace; }
  [[nodiscard]] bool fits() const { return total() <= capacity; }
};

/// One bar of a timeline.
struct TimelineEntry {
  std::string resource, name;
  Seconds start, duration;
  int micro_batch = -1;
};

struct TrainResult {
  Seconds step_time;
  double samples_per_second = 0.0;
  double tokens_per_second = 0.0;
  double tokens_per_second_per_gpu = 0.0;
  FlopsPerSecond model_flops_per_second_per_gpu;
  double mfu = 0.0;
  Breakdown breakdown;
  std::map<std::string, CommunicationTime> communication;  ///< by collective, e.g. "data-parallel all-reduce"
  std::optional<CommunicationRatio> communication_to_compute;  ///< where there are replicas to synchronise
  MemoryFootprint memory;
  std::string bottleneck;
  std::optional<Seconds> time_to_train;
};

struct CollectiveResult {
  Seconds time;
  BytesPerSecond algorithm_bandwidth, bus_bandwidth;
  std::string chosen_algorithm;
};

struct OperatorResult {
  Seconds time;
  Flops flops;
  Bytes bytes;
  std::string bound;  ///< compute, memory, latency
};

struct TasksResult {
  Seconds time;
  std::map<std::string, Seconds> finish;  ///< by task id
};

/// Exactly one of the four results is present.
struct StepResult {
  std::string scenario;
  Fidelity fidelity = Fidelity::flows;
  std::optional<TrainResult> train;
  std::optional<CollectiveResult> collective;
  std::optional<OperatorResult> op;
  std::optional<TasksResult> tasks;
  std::optional<double> cost_usd;  ///< of the whole training, when a price and a length are given
  Seconds uncertainty_low, uncertainty_high;
  std::vector<Constant> provenance;
  std::vector<std::string> warnings;
  std::vector<TimelineEntry> timeline;  ///< only when asked for

  /// The time that the scenario asks about, whatever its kind.
  [[nodiscard]] Seconds time() const;
};

}  // namespace foretrain

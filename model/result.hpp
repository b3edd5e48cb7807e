// What a prediction says: plain values. Printing happens in reports/.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/quantity.hpp"
#include "model/cost/attention.hpp"
#include "model/cost/launches.hpp"

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

/// The fullest GPU at its fullest moment; `workspace` is all that the other four are not.
struct MemoryFootprint {
  Bytes weights, gradients, optimizer, activations, workspace;
  Bytes capacity;
  Bytes host = {}, host_capacity = {};  ///< what is offloaded by all GPUs of a node, and the node's memory
  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + workspace; }
  [[nodiscard]] bool fits_gpu() const { return total() <= capacity; }
  [[nodiscard]] bool fits_host() const { return host <= host_capacity || !(host > Bytes(0.0)); }
  [[nodiscard]] bool fits() const { return fits_gpu() && fits_host(); }
};

/// One bar of a timeline.
struct TimelineEntry {
  std::string resource, name;
  Seconds start, duration;
  int micro_batch = -1;
  std::string category;  ///< compute, communication, optimizer, host or data
};

/// How a model's operators are executed; times and bytes of one call.
struct ModelCallResult {
  ExecutionMode execution = ExecutionMode::eager;
  int operators = 0;
  int kernels = 0;      ///< launched
  int fused = 0;        ///< operators done in another one's kernel
  int folded = 0;       ///< operators that depend on weights alone, done once when the code was compiled
  Seconds host;         ///< the front end's time to launch them
  Seconds device;       ///< the kernels' time
  Bytes intermediates;  ///< results in device memory between the kernels
  /// Which of the two the calls wait for when there are many: the front end, or the device.
  [[nodiscard]] bool front_end_bound() const { return host > device; }
};

/// What becomes of the tokens of samples that differ in length or hold images; per sample.
struct TokenUse {
  double tokens = 0.0;    ///< that mean something, visual ones included
  double computed = 0.0;  ///< with padding
  double visual = 0.0;
  double images = 0.0;
  Seconds slowest_replica;  ///< waiting of the others for the one with the longest samples
  [[nodiscard]] double useful_share() const { return computed > 0.0 ? tokens / computed : 1.0; }
};

struct TrainResult {
  Seconds step_time;
  double samples_per_second = 0.0;
  double tokens_per_second = 0.0;
  double tokens_per_second_per_gpu = 0.0;
  FlopsPerSecond model_flops_per_second_per_gpu;
  double mfu = 0.0;
  Breakdown breakdown;
  std::map<std::string, CommunicationTime> communication;      ///< by collective, e.g. "data-parallel all-reduce"
  std::optional<CommunicationRatio> communication_to_compute;  ///< where there are replicas to synchronise
  MemoryFootprint memory;
  std::optional<TokenUse> token_use;
  std::string bottleneck;
  std::optional<ModelCallResult> execution;  ///< of one micro-batch through the whole model, unless it is eager
  std::optional<Seconds> time_to_train;
};

/// How many updates of others were applied between a worker's pull of a key and its own push of it.
struct Staleness {
  double mean = 0.0, p50 = 0.0, p90 = 0.0, p99 = 0.0, max = 0.0;
};

/// What training with parameter servers shows beside the step.
struct ParameterServerResult {
  int workers = 0;
  int servers = 0;
  double imbalance = 1.0;              ///< parameters of the fullest server ÷ mean
  std::optional<Staleness> staleness;  ///< simulations only
  double link_utilisation = 0.0;       ///< of the busiest link that servers send or receive over, from 0 to 1
  double cpu_utilisation = 0.0;        ///< of the busiest server: adding up and updating
  // Alone, each of these would be the step; on average none is shorter.
  Seconds compute_bound, link_bound, server_bound;
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
  std::string bound;  ///< compute, memory, latency; of a walk over memory the level: L1, L2, L3, memory, TLB
  std::optional<Seconds> per_access = std::nullopt;     ///< of a walk over memory
  std::optional<OperatorMemory> memory = std::nullopt;  ///< of one run; attention only
};

struct TasksResult {
  Seconds time;
  std::map<std::string, Seconds> finish;              ///< by task id
  std::map<std::string, ModelCallResult> calls = {};  ///< by task id, of those that call a model
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
  std::optional<ParameterServerResult> parameter_server;  ///< beside `train`
  std::vector<TimelineEntry> timeline;                    ///< only when asked for

  /// The time that the scenario asks about, whatever its kind.
  [[nodiscard]] Seconds time() const;
};

}  // namespace foretrain

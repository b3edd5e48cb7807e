// The result of a prediction: plain values. Printing happens in reports/.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/base/constant.hpp"
#include "model/base/quantity.hpp"
#include "model/cost/attention.hpp"
#include "model/goodput/checkpoint_interval.hpp"
#include "model/graph/timeline.hpp"
#include "model/memory/memory_parts.hpp"
#include "model/parameter_server/server_graph.hpp"
#include "model/tasks/model_call.hpp"
#include "model/training/outcome/breakdown.hpp"
#include "model/training/outcome/communication_ratio.hpp"

namespace foretrain {

/// Effect of sharing a fabric with other jobs: steps beside each other, and of each job alone on it.
struct SharedFabric {
  struct OtherJob {
    std::string scenario;
    Seconds step_time, alone;
  };
  Seconds alone;  ///< this job's step
  std::vector<OtherJob> others;
};

/// Parts of a TrainResult. A base of it, so that they are complete where std::optional holds them.
struct TrainResultParts {
  /// Use of tokens per sample, for samples that differ in length or hold images.
  struct TokenUse {
    double tokens = 0.0;    ///< that mean something, visual ones included
    double computed = 0.0;  ///< with padding
    double visual = 0.0;
    double images = 0.0;
    Seconds slowest_replica;  ///< waiting of the others for the one with the longest samples
    [[nodiscard]] double useful_share() const { return computed > 0.0 ? tokens / computed : 1.0; }
  };

  /// In which gradients are synchronised.
  struct Buckets {
    Bytes size = Bytes::infinity();  ///< infinite: all at once
    std::string rule = {};
  };
  /// Quantiles of step times that differ at random (Cluster::jitter); the step time is their mean.
  struct Spread {
    Seconds p50, p90, p99;
  };

  /// Steps that have a checkpoint, and all.
  struct Checkpoints {
    int every = 1;
    std::string mode;
    Bytes state;    ///< of the whole training
    Seconds copy;   ///< of the GPUs' parts to their hosts, by itself
    Seconds write;  ///< from there to storage
    Seconds step_time, mean_step_time;
    Seconds beside_write;  ///< a step while the checkpoint is on its way over the cards that training uses
  };

  /// The time that failures leave of a training, of thirty days if its length is not stated.
  struct Goodput {
    Seconds mtbf;      ///< of all that can interrupt the training
    Seconds recovery;  ///< mean, from a failure until work goes on; with a machine at hand
    Seconds blocked;   ///< a checkpoint holds the training up for this
    Seconds unsafe;    ///< from there until it could be restored
    int every = 0;     ///< steps between checkpoints; 0: none
    LifetimeResult simulated;
    std::vector<std::string> kinds;           ///< of simulated.interruptions
    std::optional<IntervalSearch> intervals;  ///< with checkpoints
    double by_daly = 0.0;                     ///< its goodput by Daly's formula; 0 where training waits for none
  };

  /// Division of a step's micro-batches among replicas on nodes of several kinds.
  struct Split {
    struct Kind {
      std::string node;
      int replicas = 0;
      int micro_batches = 0;  ///< of each
    };
    std::string rule;
    std::vector<Kind> kinds;
    Seconds equal_step;  ///< of a step in which each replica has as many
  };

  /// Length and cost of the training, with 90 % intervals.
  struct Bill {
    Seconds shortest = {}, longest = {};
    std::optional<double> usd_low = {}, usd_high = {};
    std::optional<double> watts = {};  ///< mean, of all machines and the data centre around them
    std::optional<double> kwh = {}, kg_co2 = {};
  };
};

struct TrainResult : TrainResultParts {
  Seconds step_time;
  std::optional<Spread> spread;
  std::optional<Checkpoints> checkpoints;
  std::optional<Buckets> buckets;
  double samples_per_second = 0.0;
  double tokens_per_second = 0.0;
  double tokens_per_second_per_gpu = 0.0;
  FlopsPerSecond model_flops_per_second_per_gpu;
  double mfu = 0.0;
  Breakdown breakdown;
  std::map<std::string, CommunicationTime> communication;      ///< by collective, e.g. "data-parallel all-reduce"
  std::map<std::string, InsideTraffic> inside_layers;          ///< "collectives inside layers" by what they are
  std::optional<CommunicationRatio> communication_to_compute;  ///< with data-parallel replicas
  MemoryFootprint memory;
  std::optional<TokenUse> token_use;
  std::string bottleneck;
  std::optional<ModelCallResult> execution;  ///< of one micro-batch through the whole model, unless it is eager
  std::optional<Seconds> time_to_train;      ///< with failures their mean
  std::optional<Goodput> goodput;            ///< with failures
  std::optional<Split> split;                ///< if the plan splits the batch
  std::optional<Bill> bill;
  std::optional<double> cost_usd;  ///< of the whole training, when a price and a length are given
  std::optional<ParameterServerResult> parameter_server;
  std::optional<SharedFabric> shared_fabric;  ///< with other jobs
  std::string model;                          ///< its name
  double parameters = 0.0;                    ///< of the whole model, trained or not
  double active_parameters = 0.0;             ///< of these, those that a token meets
  Bytes bytes_per_parameter = {};  ///< weights, gradients and states of a trained one, divided among no ranks
  std::string trainer;             ///< its name, or what is assumed in its place
  std::vector<ResolvedSetting> framework_settings;  ///< of that trainer, as this training has them
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

/// Spread of times over randomly drawn routes (Topology::draws_routes); the result is that of the draw in the
/// middle.
struct RoutingSpread {
  std::string rule;  ///< "hash", "valiant"
  int draws = 0;
  Seconds p50, p90, p99;
};

/// Kind of measurements behind a range.
struct UncertaintyCause {
  std::string what;      ///< a kind of measurements, in words
  std::string constant;  ///< that says how far nine of ten of them lie from their predictions
  double share = 0.0;    ///< of the range's width
};

/// One resolved value of the scenario.
struct Setting {
  std::string line;         ///< line of the output: "Batch", "Plan"
  std::string name, value;  ///< "tensor", "8"; the name may be empty
  std::string key;          ///< of the scenario, by which it would be said; empty for facts
  bool by_default = false;  ///< the scenario does not say it
};

/// Fields of every kind of work, and those of this one.
struct Result {
  std::string scenario;
  Fidelity fidelity = Fidelity::flows;
  std::variant<OperatorResult, CollectiveResult, TasksResult, TrainResult> work;
  Seconds uncertainty_low, uncertainty_high;
  std::vector<UncertaintyCause> uncertainty_causes;  ///< of a range that published constants give
  std::vector<Constant> provenance;
  std::vector<std::string> warnings;
  std::vector<Setting> settings;          ///< the predicted settings
  std::vector<ResolvedSetting> resolved;  ///< every key of the scenario, when asked for
  std::optional<RoutingSpread> routing;   ///< if the fabric draws routes
  std::vector<TimelineEntry> timeline;    ///< only when asked for

  /// The result of the kind; nullptr where the work is of another.
  [[nodiscard]] const TrainResult* train() const { return std::get_if<TrainResult>(&work); }
  [[nodiscard]] TrainResult* train() { return std::get_if<TrainResult>(&work); }
  [[nodiscard]] const CollectiveResult* collective() const { return std::get_if<CollectiveResult>(&work); }
  [[nodiscard]] CollectiveResult* collective() { return std::get_if<CollectiveResult>(&work); }
  [[nodiscard]] const OperatorResult* op() const { return std::get_if<OperatorResult>(&work); }
  [[nodiscard]] OperatorResult* op() { return std::get_if<OperatorResult>(&work); }
  [[nodiscard]] const TasksResult* tasks() const { return std::get_if<TasksResult>(&work); }
  [[nodiscard]] TasksResult* tasks() { return std::get_if<TasksResult>(&work); }

  /// The time that the scenario asks about, whatever its kind.
  [[nodiscard]] Seconds time() const;
  /// Nine of ten measured cases of its kind lie between time() ÷ (1 + faster) and time() · (1 + slower), for no cause
  /// yet.
  void set_uncertainty(double faster, double slower);
  /// The same both ways.
  void set_uncertainty(double share) { set_uncertainty(share, share); }
};

}  // namespace foretrain

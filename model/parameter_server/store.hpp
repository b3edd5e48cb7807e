// Data-parallel training with parameter servers, costed: what a worker computes, which keys it exchanges with which
// server, and what a server does with them.
//
// Every worker (a GPU, or with local_reduce a machine) pushes the gradients of a key to the key's server as its
// backward pass has made them, and pulls the key's weights back before the layer's next forward pass. Servers add up
// and update: on a host at the rate of its memory (Topology::server_on), on a GPU with its kernels.
// Sources: Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014; Jayarajan et al.,
// "Priority-based parameter propagation for distributed DNN training", MLSys 2019; Peng et al., "A generic
// communication scheduler for distributed DNN training acceleration" (ByteScheduler), SOSP 2019; Ho et al., "More
// effective distributed ML via a stale synchronous parallel parameter server", NIPS 2013.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "model/parallelism/plan.hpp"
#include "model/training/step/step.hpp"

namespace foretrain {

struct ParameterStore {
  /// Lower bounds of the mean step.
  struct Bounds {
    Seconds compute;  ///< the passes of the worker(s) that the consistency waits for, see store_bounds()
    Seconds link;     ///< the link that carries most for its bandwidth, for one step of all workers
    /// The busiest server: memory traffic of receiving, adding up, sending and updating; or its calls, see Calls.
    Seconds server;
    /// One step's messages of all workers, each direction by itself: the busiest link's bytes over its bandwidth.
    Seconds push, pull;
  };

  /// Time of remote calls over TCP beside the network: a process copies and converts what it sends and receives. Calls
  /// of one connection, which joins a worker and a server, take turns, pushes and pulls apart; so do those that write
  /// one variable, under its lock. All else goes on side by side. Source: TensorFlow (core/distributed_runtime/rpc),
  /// where servers ask for gradients and workers for weights by a call a tensor (RecvTensor): one channel to a task
  /// unless num_channels_per_target says otherwise (grpc_channel_common.h), whose answers one thread takes, always the
  /// same for a task (AssignWorkerToThread of grpc_worker_cache.cc, eight threads; one in the first versions, not
  /// followed). Eight threads and a pool answer (grpc_worker_service.cc). Accumulators and updates hold a variable's
  /// mutex (core/framework/typed_conditional_accumulator_base.h, training_ops.cc with use_locking); reading shares it.
  struct Calls {
    Seconds push, pull;  ///< of all variables of the group, one worker's
    Seconds lock;        ///< of one worker's push to the largest variable
  };

  /// Pieces of keys that travel together. Groups are in model order: the first is needed first and ready last.
  struct KeyGroup {
    TimeBreakdown
        forward;  ///< of the layers whose last key is here; starts when this group and all before it are pulled
    TimeBreakdown backward;          ///< after which this group is ready
    std::vector<double> parameters;  ///< by server
    std::vector<Seconds> update;     ///< by server: applying one update
    std::vector<Calls> calls;        ///< by server
  };

  Sync::Consistency consistency = Sync::Consistency::synchronous;  ///< bounded(0) has become synchronous here
  int staleness = 0;                                               ///< bounded: 1 to Sync::most_lead
  bool overlap = true;                                             ///< else pushes wait for the backward pass
  bool first_layer_first = false;
  /// Pulls of all keys wait until all keys are updated, as where a step ends before the next begins (TensorFlow,
  /// PyTorch; MXNet has no such barrier: ByteScheduler, section 2). Without priorities they are then sent in a random
  /// order, another one each time, as TensorFlow does (Hashemi, Jyothi and Campbell, "TicTac: accelerating distributed
  /// deep learning with communication scheduling", MLSys 2019).
  bool barrier = false;
  /// A server receives from one worker after the other, all its keys as one message, instead of from all at once:
  /// processes that receive from anyone (torch.distributed.recv without a source; with Gloo, others' bytes are sent
  /// only when it is their turn).
  bool one_push_at_a_time = false;
  std::vector<std::vector<int>> workers;  ///< the GPUs of each
  std::vector<EndpointId> push_to;        ///< by server
  std::vector<EndpointId> pull_from;      ///< by server
  std::vector<KeyGroup> groups;
  std::vector<LoweredCollective> reduce, gather;  ///< by group, inside all machines at once; empty: one GPU a worker
  Bytes gradient, weight;                         ///< of one parameter, on the wire
  TimeBreakdown between;                          ///< passes between the first forward and the last backward one
  Seconds host_between_steps;
  double imbalance = 1.0;
  double compute_spread = 0.0;
  Sync::SlowWorkers slow;  ///< the last workers
  int pushed_before = 0;   ///< so many of the first workers' pushes take no time: they are done before the others begin
  std::vector<BackgroundFlow> background;

  [[nodiscard]] int worker_count() const { return static_cast<int>(workers.size()); }
  [[nodiscard]] int server_count() const { return static_cast<int>(push_to.size()); }
  /// All passes of one step.
  [[nodiscard]] TimeBreakdown compute() const;
  [[nodiscard]] bool equal_workers() const { return !(compute_spread > 0.0) && slow.count == 0; }
  /// The same with every worker as fast as the fastest in any of so many iterations.
  [[nodiscard]] ParameterStore with_fastest_workers(int iterations) const;
  /// The same where all others' pushes are done before the slow workers', and all computed as long as these.
  [[nodiscard]] ParameterStore with_slow_workers_last() const;
  /// Slowdown of a worker's passes in an iteration.
  [[nodiscard]] double factor(int worker, int iteration) const;
  /// The same, on average.
  [[nodiscard]] double mean_factor(int worker) const;
  /// Flows from workers to one server (push), or back (pull), for a group; each GPU of a worker takes an equal share.
  [[nodiscard]] std::vector<Flow> messages(std::span<const int> of_workers, int group, int server, bool push) const;

  static constexpr int most_groups = 16;
};

/// Whether a scenario's gradients go through a store: a parameter server with data parallelism alone, and more than one
/// replica (a lone one exchanges with dedicated servers only). With tensor or pipeline parallelism the server is one
/// collective per bucket.
bool uses_store(const Scenario& scenario);

/// `step` is the scenario's own. Throws ScenarioError for what cannot be combined, ImpossiblePlan where servers
/// find no place.
ParameterStore build_store(const Scenario& scenario, const TrainWorkload& train, const Model& model,
                           const Topology& topology, const Step& step);

/// Messages between some workers and all servers, in one direction: several amounts of them, each by itself.
struct MessageLoad {
  struct Link {
    LinkId link = 0;
    std::vector<Bytes> carried;  ///< by amount
  };
  std::vector<Link> links;
  std::vector<Seconds> busiest;           ///< by amount: what the busiest link or connection takes for it
  std::map<EndpointId, Seconds> latency;  ///< by a server's place: of its longest way
};

/// Parameters of all groups, by server.
std::vector<double> all_parameters(const ParameterStore& store);

/// `parameters`: by amount and server.
MessageLoad message_load(const ParameterStore& store, const Topology& topology, std::span<const int> workers, bool push,
                         const std::vector<std::vector<double>>& parameters);

/// compute is the average over many iterations, random ones where workers are unequal: synchronous, of the slowest
/// worker's passes; bounded(k), of workers that may be k iterations apart; asynchronous, n ÷ the sum of the workers'
/// speeds, as each goes at its own.
ParameterStore::Bounds store_bounds(const ParameterStore& store, const Topology& topology);

/// A key of the store, a layer's parameters, or one of the equal pieces into which a large key is cut.
struct KeyPiece {
  int layer = 0;  ///< in model order
  int piece = 0;
  double parameters = 0.0;
};

/// Cuts the keys of layers with these numbers of parameters into pieces of `split` at most (as BytePS cuts tensors,
/// BYTEPS_PARTITION_BYTES = 4,096,000, and MXNet those above MXNET_KVSTORE_BIGARRAY_BOUND = 10⁶ elements). Layers
/// without parameters have no key.
std::vector<KeyPiece> cut_keys(const std::vector<double>& parameters_of_layer, Bytes per_parameter, Bytes split);

/// The server of every piece. balanced: the largest piece first, each to the server that holds least (ties: the first);
/// at most 4/3 of the best possible maximum (Graham, "Bounds on multiprocessing timing anomalies", 1969). hashed: by a
/// hash of the piece's name, which needs no table that all workers agree on, and leaves the loads to chance.
std::vector<int> assign_keys(const std::vector<KeyPiece>& pieces, int servers, Sync::Assignment assignment);

/// Parameters of the fullest server ÷ mean over the servers: the factor by which the busiest one is slower than an even
/// split. 1 for no parameters at all.
double load_imbalance(const std::vector<KeyPiece>& pieces, const std::vector<int>& server_of_piece, int servers);

}  // namespace foretrain

// Several iterations of training with parameter servers as a task graph, and what its execution says.
//
// A worker computes on one stream. Messages from a worker to a server, and back, form one queue per pair, which sends
// what is ready first, or what the next forward pass needs first. A server updates what is complete. The kinds of
// consistency differ in edges alone:
//   synchronous    a key is updated when all workers have pushed it. All pull it then
//   asynchronous   each push is an update of its own. Its worker pulls after it
//   bounded(k)     as asynchronous, and a key is pulled for iteration i when all workers' updates of iteration i-k-1
//                  are in it (no worker is more than k iterations ahead)
#pragma once

#include <optional>
#include <vector>

#include "model/graph/execution.hpp"
#include "model/parameter_server/store.hpp"

namespace foretrain {

/// Workers that compute and send at the same time.
using WorkerLane = std::vector<int>;

/// All workers in lanes of at most `size`, as even as they can be.
std::vector<WorkerLane> lanes_of(const ParameterStore& store, int size);

/// Workers of one speed under synchronous updates do everything at the same time: they are one lane. Others have a lane
/// each while their messages, one to each server at a time, can be simulated. With more, a lane is several workers of
/// one speed, so that there are about `most_messages` at a time. Lanes drift apart as workers do; with 64 workers,
/// lanes of two change the step of the catalogue's asynchronous run by less than 1 %
/// (tests/sim/parameter_server_test.cpp).
std::vector<WorkerLane> usual_lanes(const ParameterStore& store);

/// Results of parameter servers besides the step.
struct ParameterServerResult {
  /// Number of updates of others that were applied between a worker's pull of a key and its own push of it.
  struct Staleness {
    double mean = 0.0, p50 = 0.0, p90 = 0.0, p99 = 0.0, max = 0.0;
  };

  int workers = 0;
  int servers = 0;
  double imbalance = 1.0;              ///< parameters of the fullest server ÷ mean
  std::optional<Staleness> staleness;  ///< simulations only
  double link_utilisation = 0.0;       ///< of the busiest link that servers send or receive over, from 0 to 1
  double cpu_utilisation = 0.0;        ///< of the busiest server: adding up and updating
  // Alone, each of these would be the step; on average none is shorter.
  Seconds compute_bound, link_bound, server_bound;
};

struct ServerGraph {
  struct Times {
    Seconds step;                ///< in which all workers together process as many samples as a step has
    double compute_share = 0.0;  ///< of an average worker's time
    std::optional<ParameterServerResult::Staleness> staleness;
  };

  /// Number of simulated iterations. The first iterations fill the pipeline of messages and do not count.
  struct Iterations {
    int warm_up = 0;
    std::vector<int> of_worker;  ///< warm-up included; slower asynchronous workers do fewer in the same time
    int run_out = 0;             ///< of the last ones, in which the fastest workers are done and leave the others alone
  };

  /// Whether workers share servers and links, or each has them to itself, and its lane stands for others like it.
  enum class Meeting { everybody, nobody };

  /// One key group on one server, once there and back.
  struct Exchange {
    int lane = 0;
    int group = 0;
    int server = 0;
    TaskId pull = -1;    ///< of the weights that the gradient was computed with
    TaskId update = -1;  ///< that applied the gradient
  };

  TaskGraph graph;
  Iterations iterations;
  std::vector<WorkerLane> lanes;
  Meeting meeting = Meeting::everybody;
  std::vector<std::vector<TaskId>> passes_done;  ///< by lane and iteration
  std::vector<Exchange> exchanges;               ///< asynchronous and bounded only
};

ServerGraph::Iterations usual_iterations(const ParameterStore& store);

/// A lane's messages are those of all its workers; where nobody meets, of the first alone.
ServerGraph build_server_graph(const ParameterStore& store, const Topology& topology,
                               const ServerGraph::Iterations& iterations, std::vector<WorkerLane> lanes,
                               ServerGraph::Meeting meeting = ServerGraph::Meeting::everybody);
/// usual_iterations(), usual_lanes().
ServerGraph build_server_graph(const ParameterStore& store, const Topology& topology);
/// Graph of an estimate, see estimated_times().
ServerGraph build_estimated_graph(const ParameterStore& store, const Topology& topology);

/// Asynchronous workers' speeds add up, from the moment at which all are warm to that at which the first is done.
/// Others are as fast as all of them together: an iteration ends with its last worker's passes.
ServerGraph::Times times_of(const ParameterStore& store, const ServerGraph& graph, const Execution& execution);

/// From a simulation of a few iterations, which overstates the long-run speed of workers that drift apart by up to half
/// an iteration. A step is therefore no shorter than those bounds.
ServerGraph::Times simulated_times(const ParameterStore& store, const ServerGraph& graph, const Execution& execution,
                                   const ParameterStore::Bounds& bounds);

/// From an execution of build_estimated_graph(). With c(w) for what an iteration of worker w takes with servers and
/// links to itself, and L for what all workers' messages take on the busiest link, and their updates on the busiest
/// server:
///   asynchronous   max(n / sum 1/c(w), L)   each goes at its own speed, and no faster than alone
///   bounded        max(c(w), L)             the slowest holds up all others, at last
///   synchronous    max(all n as fast as the fastest, in step; the slow ones in step, when all others have pushed; L)
/// Each is a bound of what is simulated (Denning and Buzen, "The operational analysis of queueing network models", ACM
/// Computing Surveys 10, 1978: no centre of a closed network is more than busy, no customer faster than alone), grows
/// with every worker's time and with their number, and falls as links get faster. Workers in step meet on their links;
/// what others meet at random is not counted.
ServerGraph::Times estimated_times(const ParameterStore& store, const ServerGraph& graph, const Topology& topology,
                                   const Execution& execution, const ParameterStore::Bounds& bounds);

}  // namespace foretrain

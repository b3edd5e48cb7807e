// In which order one host thread hands a task graph to streams: which stream, which events, when the host waits. What
// is done on a device is the Backend's, so that the order is tested without one.
//
// A CUDA stream works in the order in which it was given its work; events carry dependencies between streams; the host
// thread does one thing after the other. Tasks of a resource keep their order. What can be handed over without waiting
// is, before the host thread turns to work of its own. A host that sleeps or allocates keeps no device idle that has
// work to do.
#pragma once

#include <vector>

#include "validate/replay/graph.hpp"

namespace foretrain::replay {

/// Next operation of the host thread.
struct Operation {
  enum class Kind {
    stream_waits,  ///< `stream` goes on when `event` has happened
    run,           ///< puts the work of `task` on `stream`; host work: does it, there is no stream
    graph,      ///< launches the tasks `task` … `task + count - 1`, which follow each other on `stream`, as one graph
    record,     ///< `event` happens when `stream` has done all that it was given so far
    host_waits  ///< until `event` has happened
  };
  Kind kind = Kind::run;
  int stream = -1;  ///< a resource; -1: the host thread
  int task = -1;
  int count = 1;
  int event = -1;
};

struct IssuePlan {
  std::vector<Operation> operations;
  int events = 0;
  std::vector<int> streams;  ///< resources that are streams and have work
};

/// Events are recorded where another resource waits for a task, and nowhere else; one that is implied by an earlier
/// wait of the same stream is not waited for again. Throws std::invalid_argument for a graph that no order can carry
/// out: a CUDA graph of tasks that do not follow each other on one stream.
IssuePlan plan_issue(const Graph& graph);

/// Calls with which the host thread hands over what the plan holds: of kernels one for each launch, of other work one
/// for each piece, and one for each event that is recorded or waited for; of streams that several GPUs have, on each.
int calls_of(const Graph& graph, const IssuePlan& plan);

/// Carries out operations, for real or on paper. In a captured step all streams are forked from one and joined again.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual void stream_waits(int stream, int event) = 0;
  virtual void run(int task, int stream) = 0;
  virtual void run_graph(int first, int count, int stream) = 0;
  virtual void record(int event, int stream) = 0;
  virtual void host_waits(int event) = 0;
};

void issue(const IssuePlan& plan, Backend& backend);

}  // namespace foretrain::replay

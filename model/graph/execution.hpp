// The one loop that runs task graphs. Time advances here and nowhere else. A task starts when its resource is free for
// it and its predecessors are done, and ends after its duration, or when the interconnect says that its data have
// arrived.
#pragma once

#include <optional>
#include <vector>

#include "model/graph/event_queue.hpp"
#include "model/graph/task_graph.hpp"

namespace foretrain {

/// Detail of data movement: each transfer alone or beside its own other groups, one flow for all steps of a
/// collective's phase, or step by step.
enum class Fidelity { estimate, flows, steps };

/// When each task ran. Index = TaskId.
struct Execution {
  std::vector<Seconds> start;
  std::vector<Seconds> finish;
  Seconds makespan;
};

/// Carries the data of blocks that have flows. The loop calls it; it answers with events.
class Interconnect {
 public:
  virtual ~Interconnect() = default;
  /// The task's data start to move, perhaps later than the next events. Returns the task's end where that is known;
  /// else what the interconnect wants to be woken for has been pushed to `events`.
  virtual std::optional<Seconds> begin(TaskId task, Seconds now, EventQueue& events) = 0;
  /// Called with each event of flows and rates when its date has come. True when the event's task has ended.
  virtual bool handle(const Event& event, Seconds now, EventQueue& events) = 0;
};

/// Runs the graph to its end. Two runs of the same graph over the same interconnect give the same bits.
Execution run(const TaskGraph& graph, Interconnect& interconnect);
/// Each task's data take the block's uncontended time, whatever else is moving but those that share links with it
/// (Block::links); those of the blocks in `free` no time.
Execution run(const TaskGraph& graph, const std::vector<BlockId>& free = {});

}  // namespace foretrain

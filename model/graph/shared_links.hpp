// Collectives of several groups that move over the same links at the same time (LinkShare), in an estimate.
#pragma once

#include <vector>

#include "model/graph/event_queue.hpp"
#include "model/graph/task_graph.hpp"

namespace foretrain {

/// Once its latency is over, a collective is worked off at the speed that those beside it leave. Speeds are worked out
/// anew whenever one of them starts or ends to move. What meets nobody takes exactly its uncontended time, what starts
/// and ends with all others exactly LinkShare::together.
class SharedLinks {
 public:
  /// The graph must outlive it.
  explicit SharedLinks(const TaskGraph& graph) : graph_(graph) {}
  void begin(TaskId task, Seconds now, EventQueue& events);
  /// Called with the events that it has pushed. True when the event's task has ended.
  bool handle(const Event& event, Seconds now, EventQueue& events);

 private:
  struct Collective {
    TaskId task = 0;
    Seconds begun;
    bool moves = false;
    double left = 1.0;  ///< of what it moves, at `since`
    Seconds since = {};
    Seconds takes = {};  ///< for all that it moves, as fast as at `since`
    std::int32_t generation = 0;
  };
  /// Transfers that may meet.
  struct Group {
    std::vector<Collective> collectives;
    std::vector<bool> moving;  ///< by LinkShare::number
    bool will_set_speeds = false;
  };

  [[nodiscard]] Group& group_of(TaskId task);
  [[nodiscard]] Seconds duration(TaskId task, const Group& group) const;
  /// Once for all that start and end at this date.
  void speeds_change(std::int32_t number, Seconds now, EventQueue& events);
  void set_speeds(std::int32_t number, Seconds now, EventQueue& events);

  const TaskGraph& graph_;
  std::vector<Group> groups_;  ///< by LinkShare::among
};

}  // namespace foretrain

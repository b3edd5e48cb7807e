// The one loop that runs task graphs. Time advances here and nowhere else: a task starts when its resource is free for
// it and its predecessors are done, and ends after its duration, or when the interconnect says that its data have
// arrived.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "model/graph/event_queue.hpp"
#include "model/graph/shared_device.hpp"
#include "model/graph/task_graph.hpp"

namespace foretrain {

/// How closely the movement of data is followed: not at all beyond what each transfer takes by itself, or beside its
/// own other groups, by one flow for all steps of a collective's phase, or step by step.
enum class Fidelity { estimate, flows, steps };

/// When each task ran. Index = TaskId.
struct Execution {
  std::vector<Seconds> start;
  std::vector<Seconds> finish;
  Seconds makespan;
};

class EventLoop;

/// Carries the data of blocks that have flows. The loop calls it; it answers with events.
class Interconnect {
 public:
  virtual ~Interconnect() = default;
  /// The task's data start to move. True when nothing moves and the task is done; else its end, or whatever the
  /// interconnect wants to be woken for before, has been pushed to `events`.
  virtual bool begin(TaskId task, Seconds now, EventQueue& events) = 0;
  /// Called with each event of kind flows_start and flows_end when its date has come. True when the event's task has
  /// ended.
  virtual bool handle(const Event& event, Seconds now, EventQueue& events) = 0;
  /// Advances the loop to its end: at once, or in step with a clock of its own. Dates alone: run() adds the makespan.
  virtual Execution drive(EventLoop& loop) = 0;
};

/// A run in progress. The graph and the interconnect must outlive it.
class EventLoop {
 public:
  EventLoop(const TaskGraph& graph, Interconnect& interconnect);

  /// Handles events in their order until none is left, or `may_handle` says that the next one's date may not come yet.
  template <typename MayHandle>
  void advance(MayHandle may_handle) {
    while (!events_.empty() && may_handle(events_.next().date)) {
      now_ = std::max(now_, events_.next().date);
      handle(events_.pop());
    }
  }

  [[nodiscard]] bool finished() const { return tasks_left_ == 0; }
  [[nodiscard]] Seconds now() const { return now_; }
  [[nodiscard]] EventQueue& events() { return events_; }
  /// Dates, once it has finished (run() adds the makespan). Throws InternalError before.
  [[nodiscard]] Execution take_execution();

 private:
  /// The tasks of a resource in their order, and how far they have got; with Resource::Order::urgent those that are
  /// ready.
  struct Queue {
    /// (priority, moment of readiness, task)
    using Ready = std::tuple<std::int32_t, std::int64_t, TaskId>;

    std::vector<TaskId> tasks;
    std::size_t head = 0;  ///< the task that will run next
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    int idle = 1;  ///< servers without a task
  };

  [[nodiscard]] Queue& queue_of(TaskId task);
  [[nodiscard]] TaskId take_next(Queue& queue);
  void become_ready(TaskId task);
  void start_head(Queue& queue);
  void start(TaskId task);
  void finish(TaskId task);
  void handle(const Event& event);
  void expect_end(std::int32_t device);
  void end_kernels(const Event& event);

  const TaskGraph& graph_;
  Interconnect& interconnect_;
  EventQueue events_;
  std::vector<Queue> queues_;
  std::vector<SharedDevice> devices_;
  std::vector<std::int32_t> device_generations_;
  std::vector<std::int32_t> waits_for_;  ///< by task: predecessors that are not done
  std::vector<Seconds> start_, finish_;
  std::size_t tasks_left_;
  std::int64_t made_ready_ = 0;
  Seconds now_;
};

/// Runs the graph to its end. Two runs of the same graph over the same interconnect give the same bits.
Execution run(const TaskGraph& graph, Interconnect& interconnect);
/// Each task's data take the block's uncontended time, whatever else is moving but those that share links with it
/// (Block::links); those of the blocks in `free` no time.
Execution run(const TaskGraph& graph, const std::vector<BlockId>& free = {});
/// The same by way of the loop, also where every task's start is known without it.
Execution run_events(const TaskGraph& graph, const std::vector<BlockId>& free = {});

}  // namespace foretrain

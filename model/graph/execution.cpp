#include "model/graph/execution.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <tuple>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/graph/shared_device.hpp"
#include "model/graph/shared_links.hpp"

namespace foretrain {

namespace {

class UncontendedInterconnect final : public Interconnect {
 public:
  UncontendedInterconnect(const TaskGraph& graph, const std::vector<BlockId>& free)
      : graph_(graph), links_(graph), is_free_(graph.blocks().size()) {
    for (const BlockId block : free) is_free_[at_index(block)] = true;
  }

  std::optional<Seconds> begin(TaskId task, Seconds now, EventQueue& events) override {
    if (is_free_[at_index(graph_.tasks()[at_index(task)].block)]) return now;
    const Block& block = graph_.block_of(task);
    if (!block.links.shares) return now + block.uncontended;
    links_.begin(task, now, events);
    return std::nullopt;
  }
  bool handle(const Event& event, Seconds now, EventQueue& events) override {
    return links_.handle(event, now, events);
  }

 private:
  const TaskGraph& graph_;
  SharedLinks links_;
  std::vector<bool> is_free_;
};

/// Whether a task's start depends on nothing but the ends of tasks with lower numbers: each resource has its device to
/// itself and takes its tasks one by one in the order in which they were added.
bool starts_in_order(const TaskGraph& graph) {
  const auto takes_in_order = [](const Resource& resource) {
    return resource.order == Resource::Order::added && resource.device < 0;
  };
  const auto advances = [](const Block& block) { return block.uncontended >= Seconds(0.0); };
  return std::ranges::all_of(graph.resources(), takes_in_order) && std::ranges::all_of(graph.blocks(), advances);
}

/// A run in progress. The graph and the interconnect must outlive it. Where tasks start in order, each starts as soon
/// as the ends that it waits for are known, ahead of the events: of these, only flows have any.
class EventLoop {
 public:
  EventLoop(const TaskGraph& graph, Interconnect& interconnect);
  /// To the end of the last task.
  Execution run() &&;

 private:
  /// The tasks of a resource in their order, and how far they have got; with Resource::Order::urgent those that are
  /// ready.
  struct Queue {
    /// (priority, moment of readiness, task)
    using Ready = std::tuple<std::int32_t, std::int64_t, TaskId>;

    Resource::Order order = Resource::Order::added;
    int device = -1;
    int idle = 1;                 ///< servers without a task
    TaskId head = -1, tail = -1;  ///< the tasks that will run next and last; −1 where there is none
    std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
    Seconds idle_from = {};  ///< end of the last task
  };

  [[nodiscard]] Queue& queue_of(TaskId task);
  [[nodiscard]] TaskId take_next(Queue& queue);
  void become_ready(TaskId task, Queue& queue);
  void start_head(Queue& queue);
  void start(TaskId task, Queue& queue);
  void end(TaskId task, Seconds date);
  void finish(TaskId task, Seconds now);
  void handle(const Event& event);
  void expect_end(std::int32_t device);
  void end_kernels(const Event& event);

  const TaskGraph& graph_;
  Interconnect& interconnect_;
  EventQueue events_;
  std::vector<Queue> queues_;
  std::vector<SharedDevice> devices_;  ///< by number; none where no resource has one
  std::vector<std::int32_t> device_generations_;
  std::vector<TaskId> next_;             ///< by task: of its queue
  std::vector<std::int32_t> waits_for_;  ///< by task: predecessors that are not done
  Execution execution_;                  ///< start: of tasks that wait, the last end that they have waited for
  bool in_order_;
  std::vector<TaskId> ended_;  ///< their ends are known, and nothing has followed from them yet
  std::size_t tasks_left_;
  std::int64_t made_ready_ = 0;
  Seconds now_;
};

std::size_t shared_devices(const TaskGraph& graph) {
  int devices = 0;
  for (const Resource& resource : graph.resources()) devices = std::max(devices, resource.device + 1);
  return at_index(devices);
}

EventLoop::EventLoop(const TaskGraph& graph, Interconnect& interconnect)
    : graph_(graph),
      interconnect_(interconnect),
      queues_(graph.resources().size()),
      devices_(shared_devices(graph)),
      device_generations_(devices_.size()),
      execution_{std::vector<Seconds>(graph.tasks().size()), std::vector<Seconds>(graph.tasks().size()), Seconds(0.0)},
      in_order_(starts_in_order(graph)),
      tasks_left_(graph.tasks().size()) {
  for (std::size_t r = 0; r < queues_.size(); ++r) {
    const Resource& resource = graph.resources()[r];
    queues_[r].order = resource.order;
    queues_[r].device = resource.device;
    queues_[r].idle = resource.servers;
  }
  next_.resize(graph.tasks().size(), -1);
  waits_for_.reserve(next_.size());
  for (TaskId task = 0; std::cmp_less(task, next_.size()); ++task) {
    waits_for_.push_back(static_cast<std::int32_t>(graph.predecessors(task).size()));
    Queue& queue = queue_of(task);
    if (queue.order == Resource::Order::added) {
      const TaskId last = std::exchange(queue.tail, task);
      (last < 0 ? queue.head : next_[at_index(last)]) = task;
    } else if (waits_for_.back() == 0) {
      become_ready(task, queue);
    }
  }
  for (Queue& queue : queues_) start_head(queue);
}

EventLoop::Queue& EventLoop::queue_of(TaskId task) {
  return queues_[at_index(graph_.tasks()[at_index(task)].resource)];
}

/// Queues that choose hear of what they can choose from; what waits in no queue starts.
void EventLoop::become_ready(TaskId task, Queue& queue) {
  if (queue.order == Resource::Order::at_once) return start(task, queue);
  if (queue.order == Resource::Order::urgent) {
    queue.ready.push({graph_.tasks()[at_index(task)].priority, made_ready_++, task});
  }
}

/// The task that an idle resource may start now; -1 if there is none.
TaskId EventLoop::take_next(Queue& queue) {
  if (!queue.ready.empty()) {
    const TaskId task = std::get<2>(queue.ready.top());
    queue.ready.pop();
    return task;
  }
  if (queue.head < 0 || waits_for_[at_index(queue.head)] > 0) return -1;
  return std::exchange(queue.head, next_[at_index(queue.head)]);
}

void EventLoop::start_head(Queue& queue) {
  while (queue.idle > 0) {
    const TaskId task = take_next(queue);
    if (task < 0) return;
    --queue.idle;
    start(task, queue);
  }
}

void EventLoop::start(TaskId task, Queue& queue) {
  Seconds& date = execution_.start[at_index(task)];
  date = in_order_ ? std::max(date, queue.idle_from) : now_;
  const Block& block = graph_.block_of(task);
  if (block.flows) {
    if (const auto known = interconnect_.begin(task, date, events_)) end(task, *known);
  } else if (queue.device >= 0) {
    devices_[at_index(queue.device)].start(task, block.share, block.uncontended, date);
    expect_end(queue.device);
  } else {
    end(task, date + block.uncontended);
  }
}

void EventLoop::end(TaskId task, Seconds date) {
  if (!in_order_) return events_.push({date, Event::Kind::task_ends, task});
  execution_.finish[at_index(task)] = date;
  ended_.push_back(task);
}

/// The earlier event for the device, if any, is out of date.
void EventLoop::expect_end(std::int32_t device) {
  const Seconds end = devices_[at_index(device)].next_end();
  const std::int32_t generation = ++device_generations_[at_index(device)];
  if (is_finite(end)) events_.push({end, Event::Kind::kernels_end, 0, 0, device, generation});
}

void EventLoop::end_kernels(const Event& event) {
  if (event.generation != device_generations_[at_index(event.group)]) return;
  const std::vector<TaskId> ended = devices_[at_index(event.group)].take_ended(now_);
  expect_end(event.group);
  for (const TaskId task : ended) finish(task, now_);
}

void EventLoop::finish(TaskId task, Seconds now) {
  execution_.finish[at_index(task)] = now;
  execution_.makespan = std::max(execution_.makespan, now);
  --tasks_left_;
  Queue& queue = queue_of(task);
  ++queue.idle;
  queue.idle_from = now;
  for (const TaskId next : graph_.successors(task)) {
    Seconds& start = execution_.start[at_index(next)];
    start = std::max(start, now);
    if (--waits_for_[at_index(next)] > 0) continue;
    Queue& of_next = queue_of(next);
    become_ready(next, of_next);
    start_head(of_next);
  }
  start_head(queue);
}

void EventLoop::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::task_ends:
      return finish(event.task, now_);
    case Event::Kind::kernels_end:
      return end_kernels(event);
    case Event::Kind::flows_start:
    case Event::Kind::flows_end:
    case Event::Kind::rates_change:
      if (interconnect_.handle(event, now_, events_)) end(event.task, now_);
  }
}

Execution EventLoop::run() && {
  while (!events_.empty() || !ended_.empty()) {
    if (ended_.empty()) {
      now_ = std::max(now_, events_.next().date);
      handle(events_.pop());
    } else {
      const TaskId task = ended_.back();
      ended_.pop_back();
      finish(task, execution_.finish[at_index(task)]);
    }
  }
  if (tasks_left_ > 0) throw InternalError("the run stopped before its last task");
  return std::move(execution_);
}

/// The dates that the loop finds where tasks start in order and no flows meet, without its queues.
Execution run_in_order(const TaskGraph& graph, const std::vector<BlockId>& free) {
  const std::span<const Task> tasks = graph.tasks();
  std::vector<Seconds> duration;
  duration.reserve(graph.blocks().size());
  for (const Block& block : graph.blocks()) duration.push_back(block.uncontended);
  for (const BlockId block : free) {
    if (graph.blocks()[at_index(block)].flows) duration[at_index(block)] = Seconds(0.0);
  }
  std::vector<Seconds> idle_from(graph.resources().size());
  Execution execution{std::vector<Seconds>(tasks.size()), std::vector<Seconds>(tasks.size()), Seconds(0.0)};
  const std::span<const Seconds> takes = duration;  // views, whose addresses stay while dates are written
  const std::span<Seconds> starts = execution.start, ends = execution.finish, idle_at = idle_from;
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    Seconds& idle = idle_at[at_index(tasks[task].resource)];
    Seconds start = idle;
    for (const TaskId before : graph.predecessors(static_cast<TaskId>(task)))
      start = std::max(start, ends[at_index(before)]);
    starts[task] = start;
    ends[task] = idle = start + takes[at_index(tasks[task].block)];
  }
  for (const Seconds idle : idle_from) execution.makespan = std::max(execution.makespan, idle);
  return execution;
}

}  // namespace

Execution run(const TaskGraph& graph, Interconnect& interconnect) { return EventLoop(graph, interconnect).run(); }

Execution run(const TaskGraph& graph, const std::vector<BlockId>& free) {
  const auto shares = [](const Block& block) { return block.links.shares; };
  if (starts_in_order(graph) && std::ranges::none_of(graph.blocks(), shares)) return run_in_order(graph, free);
  UncontendedInterconnect interconnect(graph, free);
  return run(graph, interconnect);
}

}  // namespace foretrain

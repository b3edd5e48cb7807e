#include "model/graph/execution.hpp"

#include <algorithm>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/graph/shared_links.hpp"

namespace foretrain {

namespace {

class UncontendedInterconnect final : public Interconnect {
 public:
  UncontendedInterconnect(const TaskGraph& graph, const std::vector<BlockId>& free)
      : graph_(graph), links_(graph), is_free_(graph.blocks().size()) {
    for (const BlockId block : free) is_free_[at_index(block)] = true;
  }

  bool begin(TaskId task, Seconds now, EventQueue& events) override {
    if (is_free_[at_index(graph_.tasks()[at_index(task)].block)]) return true;
    const Block& block = graph_.block_of(task);
    if (block.links.shares) {
      links_.begin(task, now, events);
    } else {
      events.push({now + block.uncontended, Event::Kind::task_ends, task});
    }
    return false;
  }
  bool handle(const Event& event, Seconds now, EventQueue& events) override {
    return links_.handle(event, now, events);
  }
  Execution drive(EventLoop& loop) override {
    loop.advance([](Seconds) { return true; });
    return loop.take_execution();
  }

 private:
  const TaskGraph& graph_;
  SharedLinks links_;
  std::vector<bool> is_free_;
};

}  // namespace

EventLoop::EventLoop(const TaskGraph& graph, Interconnect& interconnect)
    : graph_(graph),
      interconnect_(interconnect),
      queues_(graph.resources().size()),
      devices_(shared_devices(graph)),
      device_generations_(devices_.size()),
      waits_for_(graph.predecessor_counts().begin(), graph.predecessor_counts().end()),
      start_(graph.tasks().size()),
      finish_(graph.tasks().size()),
      tasks_left_(graph.tasks().size()) {
  for (std::size_t r = 0; r < queues_.size(); ++r) queues_[r].idle = graph.resources()[r].servers;
  for (TaskId task = 0; std::cmp_less(task, graph.tasks().size()); ++task) {
    if (graph_.resource_of(task).order == Resource::Order::added) {
      queue_of(task).tasks.push_back(task);
    } else if (waits_for_[at_index(task)] == 0) {
      become_ready(task);
    }
  }
  for (Queue& queue : queues_) start_head(queue);
}

EventLoop::Queue& EventLoop::queue_of(TaskId task) {
  return queues_[at_index(graph_.tasks()[at_index(task)].resource)];
}

/// Queues that choose hear of what they can choose from; what waits in no queue starts.
void EventLoop::become_ready(TaskId task) {
  const Resource::Order order = graph_.resource_of(task).order;
  if (order == Resource::Order::at_once) return start(task);
  if (order == Resource::Order::urgent) {
    queue_of(task).ready.push({graph_.tasks()[at_index(task)].priority, made_ready_++, task});
  }
}

/// The task that an idle resource may start now; -1 if there is none.
TaskId EventLoop::take_next(Queue& queue) {
  if (!queue.ready.empty()) {
    const TaskId task = std::get<2>(queue.ready.top());
    queue.ready.pop();
    return task;
  }
  if (queue.head == queue.tasks.size() || waits_for_[at_index(queue.tasks[queue.head])] > 0) return -1;
  return queue.tasks[queue.head++];
}

void EventLoop::start_head(Queue& queue) {
  while (queue.idle > 0) {
    const TaskId task = take_next(queue);
    if (task < 0) return;
    --queue.idle;
    start(task);
  }
}

void EventLoop::start(TaskId task) {
  start_[at_index(task)] = now_;
  const Block& block = graph_.block_of(task);
  const int device = graph_.resource_of(task).device;
  if (block.flows) {
    if (interconnect_.begin(task, now_, events_)) events_.push({now_, Event::Kind::task_ends, task});
  } else if (device >= 0) {
    devices_[at_index(device)].start(task, block.share, block.uncontended, now_);
    expect_end(device);
  } else {
    events_.push({now_ + block.uncontended, Event::Kind::task_ends, task});
  }
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
  for (const TaskId task : ended) finish(task);
}

void EventLoop::finish(TaskId task) {
  finish_[at_index(task)] = now_;
  --tasks_left_;
  Queue& queue = queue_of(task);
  ++queue.idle;
  for (const TaskId next : graph_.successors(task)) {
    if (--waits_for_[at_index(next)] > 0) continue;
    become_ready(next);
    start_head(queue_of(next));
  }
  start_head(queue);
}

void EventLoop::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::task_ends:
      return finish(event.task);
    case Event::Kind::kernels_end:
      return end_kernels(event);
    case Event::Kind::flows_start:
    case Event::Kind::flows_end:
      if (interconnect_.handle(event, now_, events_)) events_.push({now_, Event::Kind::task_ends, event.task});
  }
}

Execution EventLoop::take_execution() {
  if (!finished()) throw InternalError("the run stopped before its last task");
  return {std::move(start_), std::move(finish_), Seconds(0.0)};
}

Execution run(const TaskGraph& graph, Interconnect& interconnect) {
  EventLoop loop(graph, interconnect);
  Execution execution = interconnect.drive(loop);
  for (const Seconds finish : execution.finish) execution.makespan = std::max(execution.makespan, finish);
  return execution;
}

namespace {

/// Whether a task's start depends on nothing but the ends of tasks with lower numbers: each resource takes its tasks
/// one by one in the order in which they were added, and has its device and its links to itself.
bool starts_in_order(const TaskGraph& graph) {
  const auto takes_in_order = [](const Resource& resource) {
    return resource.order == Resource::Order::added && resource.device < 0;
  };
  const auto is_alone = [](const Block& block) { return block.uncontended >= Seconds(0.0) && !block.links.shares; };
  return std::ranges::all_of(graph.resources(), takes_in_order) && std::ranges::all_of(graph.blocks(), is_alone);
}

/// The dates that the loop finds for such a graph, without its queues.
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
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    Seconds& start = execution.start[task];  // so far the latest end among its predecessors
    Seconds& idle = idle_from[at_index(tasks[task].resource)];
    start = std::max(start, idle);
    idle = start + duration[at_index(tasks[task].block)];
    execution.finish[task] = idle;
    for (const TaskId next : graph.successors(static_cast<TaskId>(task))) {
      execution.start[at_index(next)] = std::max(execution.start[at_index(next)], idle);
    }
    execution.makespan = std::max(execution.makespan, idle);
  }
  return execution;
}

}  // namespace

Execution run(const TaskGraph& graph, const std::vector<BlockId>& free) {
  if (starts_in_order(graph)) return run_in_order(graph, free);
  return run_events(graph, free);
}

Execution run_events(const TaskGraph& graph, const std::vector<BlockId>& free) {
  UncontendedInterconnect interconnect(graph, free);
  return run(graph, interconnect);
}

}  // namespace foretrain

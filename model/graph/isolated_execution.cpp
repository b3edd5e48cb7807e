// execute_isolated: one pass in the order of numbers where resources are queues, date by date where they are not.
#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "model/graph/shared_device.hpp"
#include "model/graph/task_graph.hpp"

namespace foretrain {

namespace {

/// Date by date, for graphs with queues that choose among what is ready and streams that share a device.
class IsolatedExecution {
 public:
  explicit IsolatedExecution(const TaskGraph& graph)
      : graph_(graph),
        queues_(graph.resources().size()),
        devices_(shared_devices(graph)),
        waits_for_(graph.predecessor_counts().begin(), graph.predecessor_counts().end()),
        result_{std::vector<Seconds>(graph.tasks().size()), std::vector<Seconds>(graph.tasks().size()), Seconds{}} {
    for (std::size_t r = 0; r < queues_.size(); ++r) queues_[r].idle = graph.resources()[r].servers;
    for (TaskId task = 0; std::cmp_less(task, graph.tasks().size()); ++task) {
      Queue& queue = queue_of(task);
      const QueueOrder order = resource_of(task).order;
      if (order == QueueOrder::added) {
        queue.ready.push({0, task, task});
      } else if (waits_for_[static_cast<std::size_t>(task)] == 0) {
        if (order == QueueOrder::urgent) make_ready(task);
        if (order == QueueOrder::at_once) start(task);
      }
    }
  }

  Execution run() && {
    for (Queue& queue : queues_) start_next(queue);
    for (;;) {
      const auto device = std::ranges::min_element(devices_, {}, &SharedDevice::next_end);
      const Seconds device_date = device == devices_.end() ? Seconds::infinity() : device->next_end();
      if (!ends_.empty() && ends_.top().first <= device_date) {
        const auto [date, task] = ends_.top();
        ends_.pop();
        now_ = date;
        finish(task);
      } else if (is_finite(device_date)) {
        now_ = device_date;
        for (const TaskId task : device->take_ended(now_)) finish(task);
      } else {
        break;
      }
    }
    for (const Seconds finish : result_.finish) result_.makespan = std::max(result_.makespan, finish);
    return std::move(result_);
  }

 private:
  /// Tasks by (priority, moment of readiness, number); those of a queue in order of addition wait here from the start.
  using Waiting = std::tuple<std::int32_t, std::int64_t, TaskId>;
  struct Queue {
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> ready;
    int idle = 1;  ///< servers without a task
  };

  [[nodiscard]] const Resource& resource_of(TaskId task) const {
    return graph_.resources()[static_cast<std::size_t>(graph_.tasks()[static_cast<std::size_t>(task)].resource)];
  }
  [[nodiscard]] Queue& queue_of(TaskId task) {
    return queues_[static_cast<std::size_t>(graph_.tasks()[static_cast<std::size_t>(task)].resource)];
  }
  void make_ready(TaskId task) {
    queue_of(task).ready.push({graph_.tasks()[static_cast<std::size_t>(task)].priority, ready_++, task});
  }
  void start(TaskId task) {
    result_.start[static_cast<std::size_t>(task)] = now_;
    const Block& block = graph_.block_of(task);
    const int device = resource_of(task).device;
    if (device < 0) {
      ends_.push({now_ + block.isolated, task});
    } else {
      devices_[static_cast<std::size_t>(device)].start(task, block.share, block.isolated, now_);
    }
  }
  void start_next(Queue& queue) {
    while (queue.idle > 0 && !queue.ready.empty()) {
      const TaskId task = std::get<2>(queue.ready.top());
      if (waits_for_[static_cast<std::size_t>(task)] > 0) return;
      queue.ready.pop();
      --queue.idle;
      start(task);
    }
  }
  void finish(TaskId task) {
    result_.finish[static_cast<std::size_t>(task)] = now_;
    ++queue_of(task).idle;
    for (const TaskId next : graph_.successors(task)) {
      if (--waits_for_[static_cast<std::size_t>(next)] > 0) continue;
      const QueueOrder order = resource_of(next).order;
      if (order == QueueOrder::at_once) {
        start(next);
        continue;
      }
      if (order == QueueOrder::urgent) make_ready(next);
      start_next(queue_of(next));
    }
    start_next(queue_of(task));
  }

  const TaskGraph& graph_;
  std::vector<Queue> queues_;
  std::vector<SharedDevice> devices_;
  std::vector<std::int32_t> waits_for_;
  std::priority_queue<std::pair<Seconds, TaskId>, std::vector<std::pair<Seconds, TaskId>>, std::greater<>> ends_;
  std::int64_t ready_ = 0;
  Seconds now_;
  Execution result_;
};

}  // namespace

Execution execute_isolated(const TaskGraph& graph) {
  const auto takes_dates = [](const Resource& resource) {
    return resource.order == QueueOrder::urgent || resource.device >= 0;
  };
  if (std::ranges::any_of(graph.resources(), takes_dates)) return IsolatedExecution(graph).run();
  // Tasks are numbered so that whatever a task waits for, by dependency or by its resource's order, has a smaller
  // number.
  const std::size_t tasks = graph.tasks().size();
  Execution execution{std::vector<Seconds>(tasks), std::vector<Seconds>(tasks), Seconds{}};
  std::vector<Seconds> resource_free(graph.resources().size());
  for (std::size_t task = 0; task < tasks; ++task) {
    const auto id = static_cast<TaskId>(task);
    const auto resource = static_cast<std::size_t>(graph.tasks()[task].resource);
    const bool queues = graph.resources()[resource].order != QueueOrder::at_once;
    // start[] has gathered the predecessors' ends
    const Seconds start = queues ? std::max(execution.start[task], resource_free[resource]) : execution.start[task];
    const Seconds finish = start + graph.block_of(id).isolated;
    execution.start[task] = start;
    execution.finish[task] = finish;
    if (queues) resource_free[resource] = finish;
    execution.makespan = std::max(execution.makespan, finish);
    for (const TaskId next : graph.successors(id)) {
      Seconds& earliest = execution.start[static_cast<std::size_t>(next)];
      earliest = std::max(earliest, finish);
    }
  }
  return execution;
}

}  // namespace foretrain

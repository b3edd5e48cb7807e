#include "model/graph/task_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <functional>
#include <queue>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace foretrain {

namespace {

using SuccessorGraph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                                          boost::no_property, TaskId, std::int32_t>;

}  // namespace

struct TaskGraph::Impl {
  std::vector<Block> blocks;
  std::vector<Resource> resources;
  std::vector<Task> tasks;
  std::vector<std::int32_t> predecessor_counts;
  std::vector<std::pair<TaskId, TaskId>> edges;  ///< (before, after); emptied once `successors` holds them
  SuccessorGraph successors;
};

TaskGraph::TaskGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TaskGraph::TaskGraph(TaskGraph&&) noexcept = default;
TaskGraph& TaskGraph::operator=(TaskGraph&&) noexcept = default;
TaskGraph::~TaskGraph() = default;

std::span<const Block> TaskGraph::blocks() const { return impl_->blocks; }
std::span<const Resource> TaskGraph::resources() const { return impl_->resources; }
std::span<const Task> TaskGraph::tasks() const { return impl_->tasks; }
std::span<const std::int32_t> TaskGraph::predecessor_counts() const { return impl_->predecessor_counts; }

const Block& TaskGraph::block_of(TaskId task) const {
  return impl_->blocks[static_cast<std::size_t>(impl_->tasks[static_cast<std::size_t>(task)].block)];
}

std::span<const TaskId> TaskGraph::successors(TaskId task) const {
  const auto [first, last] = boost::adjacent_vertices(task, impl_->successors);
  return {first, last};
}

TaskGraph::Builder::Builder() : impl_(std::make_unique<Impl>()) {}
TaskGraph::Builder::~Builder() = default;

BlockId TaskGraph::Builder::add_block(Block block) {
  impl_->blocks.push_back(std::move(block));
  return static_cast<BlockId>(impl_->blocks.size() - 1);
}

ResourceId TaskGraph::Builder::add_resource(Resource resource) {
  if (resource.servers < 1 || (resource.servers > 1 && resource.order != QueueOrder::urgent)) {
    throw std::invalid_argument(fmt::format("resource {}: {} tasks at a time", resource.name, resource.servers));
  }
  impl_->resources.push_back(std::move(resource));
  return static_cast<ResourceId>(impl_->resources.size() - 1);
}

TaskId TaskGraph::Builder::add_task(Task task, std::span<const TaskId> after) {
  const auto id = static_cast<TaskId>(impl_->tasks.size());
  if (task.block < 0 || std::cmp_greater_equal(task.block, impl_->blocks.size())) {
    throw std::invalid_argument(fmt::format("task {}: there is no block {}", id, task.block));
  }
  if (task.resource < 0 || std::cmp_greater_equal(task.resource, impl_->resources.size())) {
    throw std::invalid_argument(fmt::format("task {}: there is no resource {}", id, task.resource));
  }
  for (const TaskId before : after) {
    if (before < 0 || before >= id) {
      throw std::invalid_argument(
          fmt::format("task {}: it cannot wait for task {}, which is not added yet", id, before));
    }
  }
  impl_->tasks.push_back(task);
  impl_->predecessor_counts.push_back(static_cast<std::int32_t>(after.size()));
  for (const TaskId before : after) impl_->edges.emplace_back(before, id);
  return id;
}

TaskGraph TaskGraph::Builder::build() && {
  impl_->successors = SuccessorGraph(boost::edges_are_unsorted_multi_pass, impl_->edges.begin(), impl_->edges.end(),
                                     static_cast<TaskId>(impl_->tasks.size()));
  impl_->edges = {};
  return TaskGraph(std::move(impl_));
}

namespace {

/// Date by date, for graphs with queues that choose among what is ready.
class IsolatedExecution {
 public:
  explicit IsolatedExecution(const TaskGraph& graph)
      : graph_(graph),
        queues_(graph.resources().size()),
        waits_for_(graph.predecessor_counts().begin(), graph.predecessor_counts().end()),
        result_{std::vector<Seconds>(graph.tasks().size()), std::vector<Seconds>(graph.tasks().size()), Seconds{}} {
    for (std::size_t r = 0; r < queues_.size(); ++r) queues_[r].idle = graph.resources()[r].servers;
    for (TaskId task = 0; std::cmp_less(task, graph.tasks().size()); ++task) {
      Queue& queue = queue_of(task);
      if (order_of(task) == QueueOrder::added) {
        queue.ready.push({0, task, task});
      } else if (waits_for_[static_cast<std::size_t>(task)] == 0) {
        make_ready(task);
      }
    }
  }

  Execution run() && {
    for (Queue& queue : queues_) start_next(queue);
    while (!ends_.empty()) {
      const auto [date, task] = ends_.top();
      ends_.pop();
      now_ = date;
      finish(task);
    }
    result_.makespan = now_;
    return std::move(result_);
  }

 private:
  /// Tasks by (priority, moment of readiness, number); those of a queue in order of addition wait here from the start.
  using Waiting = std::tuple<std::int32_t, std::int64_t, TaskId>;
  struct Queue {
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> ready;
    int idle = 1;  ///< servers without a task
  };

  [[nodiscard]] Queue& queue_of(TaskId task) {
    return queues_[static_cast<std::size_t>(graph_.tasks()[static_cast<std::size_t>(task)].resource)];
  }
  [[nodiscard]] QueueOrder order_of(TaskId task) const {
    const auto resource = static_cast<std::size_t>(graph_.tasks()[static_cast<std::size_t>(task)].resource);
    return graph_.resources()[resource].order;
  }
  void make_ready(TaskId task) {
    queue_of(task).ready.push({graph_.tasks()[static_cast<std::size_t>(task)].priority, ready_++, task});
  }
  void start_next(Queue& queue) {
    while (queue.idle > 0 && !queue.ready.empty()) {
      const TaskId task = std::get<2>(queue.ready.top());
      if (waits_for_[static_cast<std::size_t>(task)] > 0) return;
      queue.ready.pop();
      --queue.idle;
      result_.start[static_cast<std::size_t>(task)] = now_;
      ends_.push({now_ + graph_.block_of(task).isolated, task});
    }
  }
  void finish(TaskId task) {
    result_.finish[static_cast<std::size_t>(task)] = now_;
    ++queue_of(task).idle;
    for (const TaskId next : graph_.successors(task)) {
      if (--waits_for_[static_cast<std::size_t>(next)] > 0) continue;
      if (order_of(next) == QueueOrder::urgent) make_ready(next);
      start_next(queue_of(next));
    }
    start_next(queue_of(task));
  }

  const TaskGraph& graph_;
  std::vector<Queue> queues_;
  std::vector<std::int32_t> waits_for_;
  std::priority_queue<std::pair<Seconds, TaskId>, std::vector<std::pair<Seconds, TaskId>>, std::greater<>> ends_;
  std::int64_t ready_ = 0;
  Seconds now_;
  Execution result_;
};

}  // namespace

Execution execute_isolated(const TaskGraph& graph) {
  const auto urgent = [](const Resource& resource) { return resource.order == QueueOrder::urgent; };
  if (std::ranges::any_of(graph.resources(), urgent)) return IsolatedExecution(graph).run();
  // Tasks are numbered so that whatever a task waits for, by dependency or by its resource's order, has a smaller
  // number.
  const std::size_t tasks = graph.tasks().size();
  Execution execution{std::vector<Seconds>(tasks), std::vector<Seconds>(tasks), Seconds{}};
  std::vector<Seconds> resource_free(graph.resources().size());
  for (std::size_t task = 0; task < tasks; ++task) {
    const auto id = static_cast<TaskId>(task);
    Seconds& free = resource_free[static_cast<std::size_t>(graph.tasks()[task].resource)];
    const Seconds start = std::max(execution.start[task], free);  // start[] has gathered the predecessors' ends
    const Seconds finish = start + graph.block_of(id).isolated;
    execution.start[task] = start;
    execution.finish[task] = free = finish;
    execution.makespan = std::max(execution.makespan, finish);
    for (const TaskId next : graph.successors(id)) {
      Seconds& earliest = execution.start[static_cast<std::size_t>(next)];
      earliest = std::max(earliest, finish);
    }
  }
  return execution;
}

Seconds critical_path(const TaskGraph& graph) {
  Seconds longest;
  std::vector<Seconds> start(graph.tasks().size());
  for (std::size_t task = 0; task < start.size(); ++task) {
    const auto id = static_cast<TaskId>(task);
    const Seconds finish = start[task] + graph.block_of(id).isolated;
    longest = std::max(longest, finish);
    for (const TaskId next : graph.successors(id)) {
      Seconds& earliest = start[static_cast<std::size_t>(next)];
      earliest = std::max(earliest, finish);
    }
  }
  return longest;
}

}  // namespace foretrain

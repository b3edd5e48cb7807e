#include "validate/replay/issue.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "model/base/number.hpp"

namespace foretrain::replay {

namespace {

class Planner {
 public:
  explicit Planner(const Graph& graph) : graph_(graph), tasks_(graph.tasks.size()), queues_(graph.resources.size()) {
    for (Queue& queue : queues_) queue.seen.assign(queues_.size(), -1);
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      queues_[resource_of(task)].tasks.push_back(task);
      for (const int before : graph.tasks[task].after) add_dependency(task, at_index(before));
    }
  }

  IssuePlan run() && {
    std::size_t left = tasks_.size();
    while (left > 0) {
      // Devices first; of several the one whose turn comes first in the list.
      std::optional<std::pair<bool, std::size_t>> chosen;  // there always is one: the task of the least number left
      for (std::size_t r = 0; r < queues_.size(); ++r) {
        const Queue& queue = queues_[r];
        if (queue.issued == queue.tasks.size() || !is_ready(queue.tasks[queue.issued])) continue;
        const std::pair candidate(graph_.resources[r].on_host(), queue.tasks[queue.issued]);
        if (!chosen || candidate < *chosen) chosen = candidate;
      }
      left -= add(chosen->second);
    }
    for (std::size_t r = 0; r < queues_.size(); ++r) {
      if (is_stream(r) && !queues_[r].tasks.empty()) plan_.streams.push_back(static_cast<int>(r));
    }
    return std::move(plan_);
  }

 private:
  struct Planned {
    std::vector<std::size_t> after;  ///< paths left out
    int position = -1;               ///< in its queue, once it is issued
    int event = -1;
    bool wanted = false;  ///< another resource waits for it
  };
  struct Queue {
    std::vector<std::size_t> tasks;
    std::size_t issued = 0;
    std::vector<int> seen;  ///< by stream: the position of the last of its tasks that this has waited for
  };

  /// Tasks behind a transfer wait for all its dependencies.
  void add_dependency(std::size_t task, std::size_t before) {
    const std::vector<std::size_t> all = is_path(before) ? tasks_[before].after : std::vector{before};
    for (const std::size_t one : all) {
      tasks_[task].after.push_back(one);
      const bool other = resource_of(one) != resource_of(task);
      if (other && is_stream(resource_of(one)) && !is_path(task)) tasks_[one].wanted = true;
    }
  }

  [[nodiscard]] std::size_t resource_of(std::size_t task) const { return at_index(graph_.tasks[task].resource); }
  [[nodiscard]] Resource::Kind kind_of(std::size_t resource) const { return graph_.resources[resource].kind; }
  [[nodiscard]] bool is_stream(std::size_t resource) const {
    return kind_of(resource) == Resource::Kind::stream || kind_of(resource) == Resource::Kind::copies;
  }
  [[nodiscard]] bool is_path(std::size_t task) const { return kind_of(resource_of(task)) == Resource::Kind::path; }
  [[nodiscard]] bool is_ready(std::size_t task) const {
    return std::ranges::all_of(tasks_[task].after, [&](std::size_t b) { return tasks_[b].position >= 0; });
  }

  /// Number of tasks from this one on that belong to one CUDA graph: 1 for a task that is launched by itself.
  [[nodiscard]] std::size_t together(std::size_t task) const {
    for (const int launch : graph_.tasks[task].after) {
      if (!is_path(at_index(launch))) continue;
      for (const int before : graph_.tasks[at_index(launch)].after) {
        const std::vector<Work>& work = graph_.blocks[at_index(graph_.tasks[at_index(before)].block)].work;
        const auto* host = work.empty() ? nullptr : std::get_if<HostWork>(&work.front());
        if (host == nullptr || host->action != HostWork::Action::dispatch || !host->graph) continue;
        return at_index(std::max(1, host->kernels));
      }
    }
    return 1;
  }

  /// Waits for what the task needs beyond the order of its own queue. The host has done its own work when it comes
  /// here.
  void wait_for(std::size_t task) {
    const std::size_t own = resource_of(task);
    for (const std::size_t before : tasks_[task].after) {
      const std::size_t other = resource_of(before);
      if (other == own || !is_stream(other)) continue;
      // One wait covers all that the other stream was given before.
      if (queues_[own].seen[other] >= tasks_[before].position) continue;
      queues_[own].seen[other] = tasks_[before].position;
      const bool waits = is_stream(own);
      add(waits ? Operation::Kind::stream_waits : Operation::Kind::host_waits, waits ? static_cast<int>(own) : -1, -1,
          1, tasks_[before].event);
    }
  }

  void add(Operation::Kind kind, int stream, int task, int count = 1, int event = -1) {
    plan_.operations.push_back({kind, stream, task, count, event});
  }

  /// The number of tasks that this took.
  std::size_t add(std::size_t task) {
    const std::size_t own = resource_of(task);
    const int stream = is_stream(own) ? static_cast<int>(own) : -1;
    const std::size_t count = stream >= 0 ? together(task) : 1;
    if (!is_path(task)) {
      wait_for(task);
      for (std::size_t at = task + 1; at < task + count; ++at) {
        if (at < tasks_.size() && resource_of(at) == own && graph_.tasks[at].after.empty()) continue;
        throw std::invalid_argument("task " + std::to_string(at) + ": it does not follow task " +
                                    std::to_string(at - 1) + ", with which it is launched as one graph");
      }
      add(count > 1 ? Operation::Kind::graph : Operation::Kind::run, stream, static_cast<int>(task),
          static_cast<int>(count));
    }
    for (std::size_t at = task; at < task + count; ++at) {
      tasks_[at].position = static_cast<int>(queues_[own].issued++);
      if (stream < 0 || !tasks_[at].wanted) continue;
      tasks_[at].event = plan_.events++;
      add(Operation::Kind::record, stream, static_cast<int>(at), 1, tasks_[at].event);
    }
    return count;
  }

  const Graph& graph_;
  std::vector<Planned> tasks_;
  std::vector<Queue> queues_;
  IssuePlan plan_;
};

}  // namespace

IssuePlan plan_issue(const Graph& graph) { return Planner(graph).run(); }

int calls_of(const Graph& graph, const IssuePlan& plan) {
  int calls = 0;
  for (const Operation& operation : plan.operations) {
    if (operation.kind != Operation::Kind::run || operation.stream < 0) {
      ++calls;
      continue;
    }
    for (const Work& work : graph.blocks[at_index(graph.tasks[at_index(operation.task)].block)].work) {
      const auto* kernel = std::get_if<KernelWork>(&work);
      calls += kernel != nullptr ? kernel->count : 1;
    }
  }
  return calls * (graph.replicated ? graph.gpus : 1);
}

void issue(const IssuePlan& plan, Backend& backend) {
  for (const Operation& operation : plan.operations) {
    switch (operation.kind) {
      case Operation::Kind::stream_waits:
        backend.stream_waits(operation.stream, operation.event);
        break;
      case Operation::Kind::run:
        backend.run(operation.task, operation.stream);
        break;
      case Operation::Kind::graph:
        backend.run_graph(operation.task, operation.count, operation.stream);
        break;
      case Operation::Kind::record:
        backend.record(operation.event, operation.stream);
        break;
      case Operation::Kind::host_waits:
        backend.host_waits(operation.event);
        break;
    }
  }
}

}  // namespace foretrain::replay

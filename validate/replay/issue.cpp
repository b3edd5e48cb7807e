#include "validate/replay/issue.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace foretrain::replay {

namespace {

class Planner {
 public:
  explicit Planner(const Graph& graph)
      : graph_(graph),
        after_(graph.tasks.size()),
        queues_(graph.resources.size()),
        next_(graph.resources.size(), 0),
        issued_(graph.tasks.size(), false),
        event_(graph.tasks.size(), -1),
        position_(graph.tasks.size(), -1),
        length_(graph.resources.size(), 0),
        seen_(graph.resources.size(), std::vector<int>(graph.resources.size(), -1)),
        wanted_(graph.tasks.size(), false) {
    for (std::size_t task = 0; task < graph.tasks.size(); ++task) {
      queues_[resource_of(task)].push_back(static_cast<int>(task));
      for (const int before : graph.tasks[task].after) add_dependency(task, static_cast<std::size_t>(before));
    }
  }

  IssuePlan run() && {
    std::size_t left = graph_.tasks.size();
    while (left > 0) {
      // Devices first; of several the one whose turn comes first in the list.
      int chosen = -1;
      bool host = true;
      for (std::size_t r = 0; r < queues_.size(); ++r) {
        const int task = head(r);
        if (task < 0 || !ready(task)) continue;
        const bool on_host = graph_.resources[r].on_host();
        if (chosen < 0 || (host && !on_host) || (host == on_host && task < chosen)) {
          chosen = task;
          host = on_host;
        }
      }
      left -= add(chosen);  // there always is one: the task of the least number that is left
    }
    for (std::size_t r = 0; r < queues_.size(); ++r) {
      if (is_stream(r) && !queues_[r].empty()) plan_.streams.push_back(static_cast<int>(r));
    }
    return std::move(plan_);
  }

 private:
  /// What waits for something on its way waits for whatever that waited for.
  void add_dependency(std::size_t task, std::size_t before) {
    if (is_path(before)) {
      after_[task].insert(after_[task].end(), after_[before].begin(), after_[before].end());
      for (const int earlier : after_[before]) note(task, static_cast<std::size_t>(earlier));
      return;
    }
    after_[task].push_back(static_cast<int>(before));
    note(task, before);
  }
  void note(std::size_t task, std::size_t before) {
    if (resource_of(before) != resource_of(task) && is_stream(resource_of(before)) && !is_path(task)) {
      wanted_[before] = true;
    }
  }

  [[nodiscard]] std::size_t resource_of(std::size_t task) const {
    return static_cast<std::size_t>(graph_.tasks[task].resource);
  }
  [[nodiscard]] bool is_stream(std::size_t resource) const {
    const Resource::Kind kind = graph_.resources[resource].kind;
    return kind == Resource::Kind::stream || kind == Resource::Kind::copies;
  }
  [[nodiscard]] int head(std::size_t resource) const {
    const auto at = static_cast<std::size_t>(next_[resource]);
    return at < queues_[resource].size() ? queues_[resource][at] : -1;
  }
  [[nodiscard]] bool ready(int task) const {
    const std::vector<int>& after = after_[static_cast<std::size_t>(task)];
    return std::all_of(after.begin(), after.end(), [&](int b) { return issued_[static_cast<std::size_t>(b)]; });
  }

  /// The dispatch of a task as a CUDA graph, if it is one.
  [[nodiscard]] const HostWork* graph_dispatch(std::size_t task) const {
    const Block& block = graph_.blocks[static_cast<std::size_t>(graph_.tasks[task].block)];
    if (block.work.empty()) return nullptr;
    const auto* host = std::get_if<HostWork>(&block.work.front());
    return host != nullptr && host->action == HostWork::Action::dispatch && host->graph ? host : nullptr;
  }

  /// How many tasks from this one on belong to one CUDA graph: 1 for a task that is launched by itself.
  [[nodiscard]] int together(std::size_t task) const {
    for (const int launch : graph_.tasks[task].after) {
      for (const int before : graph_.tasks[static_cast<std::size_t>(launch)].after) {
        const HostWork* dispatch = graph_dispatch(static_cast<std::size_t>(before));
        if (dispatch == nullptr || !is_path(static_cast<std::size_t>(launch))) continue;
        return std::max(1, dispatch->kernels);
      }
    }
    return 1;
  }
  [[nodiscard]] bool is_path(std::size_t task) const {
    return graph_.resources[resource_of(task)].kind == Resource::Kind::path;
  }

  /// Waits for what the task needs; returns nothing where the order of its own queue is enough.
  void wait_for(std::size_t task) {
    const std::size_t own = resource_of(task);
    for (const int before : after_[task]) {
      const auto b = static_cast<std::size_t>(before);
      const std::size_t other = resource_of(b);
      if (other == own || !is_stream(other)) continue;  // the host has done its own work when it comes here
      // One wait covers all that the other stream was given before.
      if (seen_[own][other] >= position_[b]) continue;
      seen_[own][other] = position_[b];
      if (is_stream(own)) {
        plan_.operations.push_back({Operation::Kind::stream_waits, static_cast<int>(own), -1, 1, event_[b]});
      } else if (graph_.resources[own].on_host()) {
        plan_.operations.push_back({Operation::Kind::host_waits, -1, -1, 1, event_[b]});
      }
    }
  }

  void mark(std::size_t task) {
    const std::size_t own = resource_of(task);
    issued_[task] = true;
    position_[task] = length_[own]++;
    ++next_[own];
  }

  void record(std::size_t task) {
    if (!wanted_[task]) return;
    event_[task] = plan_.events++;
    plan_.operations.push_back(
        {Operation::Kind::record, static_cast<int>(resource_of(task)), static_cast<int>(task), 1, event_[task]});
  }

  /// The number of tasks that this took.
  std::size_t add(int chosen) {
    const auto task = static_cast<std::size_t>(chosen);
    const std::size_t own = resource_of(task);
    if (is_path(task)) {
      mark(task);
      return 1;
    }
    wait_for(task);
    if (!is_stream(own)) {
      plan_.operations.push_back({Operation::Kind::run, -1, chosen, 1, -1});
      mark(task);
      return 1;
    }
    const int count = together(task);
    if (count == 1) {
      plan_.operations.push_back({Operation::Kind::run, static_cast<int>(own), chosen, 1, -1});
      mark(task);
      record(task);
      return 1;
    }
    for (int i = 1; i < count; ++i) {
      const std::size_t at = task + static_cast<std::size_t>(i);
      if (at >= graph_.tasks.size() || resource_of(at) != own || !graph_.tasks[at].after.empty()) {
        throw std::invalid_argument("task " + std::to_string(at) + ": it does not follow task " +
                                    std::to_string(at - 1) + ", with which it is launched as one graph");
      }
    }
    plan_.operations.push_back({Operation::Kind::graph, static_cast<int>(own), chosen, count, -1});
    for (int i = 0; i < count; ++i) mark(task + static_cast<std::size_t>(i));
    for (int i = 0; i < count; ++i) record(task + static_cast<std::size_t>(i));
    return static_cast<std::size_t>(count);
  }

  const Graph& graph_;
  std::vector<std::vector<int>> after_;  ///< of each task, paths left out
  std::vector<std::vector<int>> queues_;
  std::vector<int> next_;  ///< by resource: how many of its tasks are issued
  std::vector<bool> issued_;
  std::vector<int> event_, position_;
  std::vector<int> length_;
  std::vector<std::vector<int>> seen_;  ///< by resource and stream: the last task of that it has waited for
  std::vector<bool> wanted_;            ///< another resource waits for it
  IssuePlan plan_;
};

}  // namespace

IssuePlan plan_issue(const Graph& graph) { return Planner(graph).run(); }

namespace {

int calls_of(const Block& block) {
  int calls = 0;
  for (const Work& work : block.work) {
    const auto* kernel = std::get_if<KernelWork>(&work);
    calls += kernel != nullptr ? kernel->count : 1;
  }
  return calls;
}

}  // namespace

int calls_of(const Graph& graph, const IssuePlan& plan) {
  int calls = 0;
  for (const Operation& operation : plan.operations) {
    const bool run = operation.kind == Operation::Kind::run && operation.stream >= 0;
    const auto task = static_cast<std::size_t>(std::max(operation.task, 0));
    calls += run ? calls_of(graph.blocks[static_cast<std::size_t>(graph.tasks[task].block)]) : 1;
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

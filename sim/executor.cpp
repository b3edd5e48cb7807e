#include "sim/executor.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <variant>

#include "model/graph/shared_device.hpp"
#include "sim/child_process.hpp"
#include "sim/collective_run.hpp"
#include "sim/event_queue.hpp"
#include "sim/folding.hpp"
#include "sim/moving_flows.hpp"
#include "sim/network_plan.hpp"
#include "sim/platform.hpp"

namespace foretrain {

namespace {

/// The tasks of a resource in their order, and how far they have got; with QueueOrder::urgent those that are ready.
struct ResourceQueue {
  /// (priority, moment of readiness, task)
  using Ready = std::tuple<std::int32_t, std::int64_t, TaskId>;

  std::vector<TaskId> tasks;
  std::size_t head = 0;  ///< the task that will run next
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  int idle = 1;                        ///< servers without a task
  std::unique_ptr<CollectiveRun> run;  ///< of the task that runs, if it is a collective
};

NetworkPlan make_plan(const Topology& topology, std::span<const BackgroundFlow> background) {
  NetworkPlan plan(topology);
  for (const BackgroundRoute& route : background_routes(background, topology)) plan.add_background(route);
  return plan;
}

/// One program per block whose work is a collective and which some task uses.
std::vector<std::unique_ptr<CollectiveProgram>> make_programs(const TaskGraph& graph, Fidelity fidelity,
                                                              NetworkPlan& plan) {
  std::vector<std::unique_ptr<CollectiveProgram>> programs(graph.blocks().size());
  for (const Task& task : graph.tasks()) {
    auto& program = programs[static_cast<std::size_t>(task.block)];
    const auto* lowered = std::get_if<LoweredCollective>(&graph.blocks()[static_cast<std::size_t>(task.block)].work);
    if (lowered == nullptr || program != nullptr) continue;
    program = fidelity == Fidelity::steps ? make_steps_program(*lowered, plan) : make_flows_program(*lowered, plan);
  }
  return programs;
}

class Simulation {
 public:
  Simulation(const TaskGraph& graph, const Topology& topology, Fidelity fidelity, const SimulationOptions& options)
      : graph_(graph),
        folding_wanted_(options.folding),
        plan_(make_plan(topology, options.background)),
        programs_(make_programs(graph, fidelity, plan_)),
        flows_(plan_, events_),
        queues_(graph.resources().size()),
        devices_(shared_devices(graph)),
        device_generations_(devices_.size()),
        waits_for_(graph.predecessor_counts().begin(), graph.predecessor_counts().end()),
        start_(graph.tasks().size()),
        finish_(graph.tasks().size()) {
    for (std::size_t r = 0; r < queues_.size(); ++r) queues_[r].idle = graph.resources()[r].servers;
    for (TaskId task = 0; std::cmp_less(task, graph.tasks().size()); ++task) {
      const QueueOrder order = resource_of(task).order;
      if (order == QueueOrder::added) {
        queue_of(task).tasks.push_back(task);
      } else if (waits_for_[static_cast<std::size_t>(task)] == 0) {
        if (order == QueueOrder::urgent) make_ready(task);
        if (order == QueueOrder::at_once) start(task);
      }
    }
    for (ResourceQueue& queue : queues_) start_head(queue);
  }

  /// Runs until the end, or until flows meet.
  void run_without_platform() { handle_events(); }
  /// Runs to the end, wherever the simulation stands.
  void run_on_platform() {
    folding_.emplace(plan_, folding_wanted_);
    platform_.emplace(folding_->platform());
    platform_->set_alarm(now_);
    platform_->run([this] { handle_events(); });
    if (tasks_left_ > 0) throw std::logic_error("the simulation stopped before its last task");
  }

  [[nodiscard]] bool finished() const { return tasks_left_ == 0; }
  /// Once it has finished.
  [[nodiscard]] Execution take_execution() { return {std::move(start_), std::move(finish_), {}}; }

 private:
  [[nodiscard]] ResourceQueue& queue_of(TaskId task) {
    return queues_[static_cast<std::size_t>(graph_.tasks()[static_cast<std::size_t>(task)].resource)];
  }
  [[nodiscard]] std::unique_ptr<CollectiveRun>& run_of(TaskId task) { return queue_of(task).run; }

  [[nodiscard]] const Resource& resource_of(TaskId task) const {
    return graph_.resources()[static_cast<std::size_t>(graph_.tasks()[static_cast<std::size_t>(task)].resource)];
  }
  void make_ready(TaskId task) {
    queue_of(task).ready.push({graph_.tasks()[static_cast<std::size_t>(task)].priority, made_ready_++, task});
  }

  /// The task that an idle resource may start now; -1 if there is none.
  static TaskId take_next(ResourceQueue& queue, const std::vector<std::int32_t>& waits_for) {
    if (!queue.ready.empty()) {
      const TaskId task = std::get<2>(queue.ready.top());
      queue.ready.pop();
      return task;
    }
    if (queue.head == queue.tasks.size()) return -1;
    const TaskId task = queue.tasks[queue.head];
    if (waits_for[static_cast<std::size_t>(task)] > 0) return -1;
    ++queue.head;
    return task;
  }

  void start_head(ResourceQueue& queue) {
    while (queue.idle > 0) {
      const TaskId task = take_next(queue, waits_for_);
      if (task < 0) return;
      --queue.idle;
      start(task);
    }
  }

  void start(TaskId task) {
    start_[static_cast<std::size_t>(task)] = now_;
    const auto block = static_cast<std::size_t>(graph_.tasks()[static_cast<std::size_t>(task)].block);
    if (const int device = resource_of(task).device; device >= 0 && programs_[block] == nullptr) {
      const Block& work = graph_.blocks()[block];
      devices_[static_cast<std::size_t>(device)].start(task, work.share, std::get<Seconds>(work.work), now_);
      expect_end(device);
    } else if (programs_[block] == nullptr) {
      events_.push({now_ + std::get<Seconds>(graph_.blocks()[block].work), EventKind::task_ends, task});
    } else {
      run_of(task) = programs_[block]->run({events_, flows_, task});
      run_of(task)->begin(now_);
      finish_if_done(task);
    }
  }

  /// The earlier event for the device, if any, is out of date.
  void expect_end(std::int32_t device) {
    const Seconds end = devices_[static_cast<std::size_t>(device)].next_end();
    const std::int32_t generation = ++device_generations_[static_cast<std::size_t>(device)];
    if (is_finite(end)) events_.push({end, EventKind::kernels_end, 0, 0, device, generation});
  }

  void end_kernels(const Event& event) {
    const auto device = static_cast<std::size_t>(event.group);
    if (event.generation != device_generations_[device]) return;
    const std::vector<TaskId> ended = devices_[device].take_ended(now_);
    expect_end(event.group);
    for (const TaskId task : ended) finish_task(task);
  }

  void finish_if_done(TaskId task) {
    if (!run_of(task)->finished()) return;
    run_of(task) = nullptr;
    events_.push({now_, EventKind::task_ends, task});
  }

  void finish_task(TaskId task) {
    finish_[static_cast<std::size_t>(task)] = now_;
    --tasks_left_;
    ResourceQueue& queue = queue_of(task);
    ++queue.idle;
    for (const TaskId next : graph_.successors(task)) {
      if (--waits_for_[static_cast<std::size_t>(next)] > 0) continue;
      const QueueOrder order = resource_of(next).order;
      if (order == QueueOrder::at_once) {
        start(next);
        continue;
      }
      if (order == QueueOrder::urgent) make_ready(next);
      start_head(queue_of(next));
    }
    start_head(queue);
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case EventKind::task_ends:
        return finish_task(event.task);
      case EventKind::kernels_end:
        return end_kernels(event);
      case EventKind::flows_start:
        run_of(event.task)->start_flows(event.part, now_);
        return finish_if_done(event.task);
      case EventKind::flows_end:
        if (!flows_.end(event)) return;
        run_of(event.task)->end_flows(event.part, now_);
        return finish_if_done(event.task);
    }
  }

  /// Whether an event of this date may be handled before SimGrid's clock moves on: flows on the platform may end
  /// earlier, and flows that have met must start first.
  [[nodiscard]] bool may_handle(Seconds date) const {
    if (date > now_ && flows_.have_met()) return false;
    return !platform_ || platform_->flows_in_progress() == 0 || date <= platform_->now();
  }

  void handle_events() {
    if (platform_) flows_.take_from(*platform_);
    for (;;) {
      while (!events_.empty() && may_handle(events_.next().date)) {
        now_ = std::max(now_, events_.next().date);
        handle(events_.pop());
      }
      if (!flows_.have_met() || !platform_ || platform_->now() < now_) break;
      flows_.give_to(*platform_, *folding_);
    }
    if (!platform_) return;
    if (flows_.have_met()) {
      platform_->set_alarm(now_);
    } else if (!events_.empty()) {
      platform_->set_alarm(events_.next().date);
    }
  }

  const TaskGraph& graph_;
  bool folding_wanted_;
  NetworkPlan plan_;
  std::vector<std::unique_ptr<CollectiveProgram>> programs_;
  EventQueue events_;
  MovingFlows flows_;
  std::optional<Folding> folding_;
  std::optional<Platform> platform_;
  std::vector<ResourceQueue> queues_;
  std::vector<SharedDevice> devices_;
  std::vector<std::int32_t> device_generations_;
  std::vector<std::int32_t> waits_for_;
  std::vector<Seconds> start_, finish_;
  std::size_t tasks_left_ = start_.size();
  std::int64_t made_ready_ = 0;
  Seconds now_;
};

}  // namespace

Execution simulate(const TaskGraph& graph, const Topology& topology, Fidelity fidelity,
                   const SimulationOptions& options) {
  if (fidelity == Fidelity::estimate) throw std::invalid_argument("fidelity estimate is computed, not simulated");
  Simulation simulation(graph, topology, fidelity, options);
  Execution execution;
  simulation.run_without_platform();
  if (simulation.finished()) {
    execution = simulation.take_execution();
  } else {
    // Once per process, and before the first result: a SimGrid that shares links differently must not go unnoticed.
    [[maybe_unused]] static const bool checked = (run_in_child(check_platform), true);
    const std::size_t tasks = graph.tasks().size();
    const SharedMemory memory(2 * tasks * sizeof(Seconds));
    const std::span<Seconds> dates = memory.as<Seconds>(2 * tasks);
    run_in_child([&] {
      simulation.run_on_platform();
      const Execution done = simulation.take_execution();
      std::ranges::copy(done.start, dates.begin());
      std::ranges::copy(done.finish, dates.subspan(tasks).begin());
    });
    execution.start.assign(dates.begin(), dates.begin() + static_cast<std::ptrdiff_t>(tasks));
    execution.finish.assign(dates.begin() + static_cast<std::ptrdiff_t>(tasks), dates.end());
  }
  for (const Seconds finish : execution.finish) execution.makespan = std::max(execution.makespan, finish);
  return execution;
}

}  // namespace foretrain

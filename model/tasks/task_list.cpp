#include "model/tasks/task_list.hpp"

#include <array>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "model/base/error.hpp"
#include "model/cost/launches.hpp"
#include "model/tasks/task_blocks.hpp"

namespace foretrain {

namespace {

using Action = HostWork::Action;

constexpr std::size_t most_tasks = 50'000'000;

/// Work that a host thread launches, and what that thread does for it.
struct Launched {
  std::vector<BlockId> kernels;  ///< of one repetition
  BlockId dispatch = 0;
  BlockId wait = -1;        ///< on the host thread once the work is done
  std::size_t at_once = 1;  ///< kernels handed over together
  bool repetitions_together = false;
  ResourceId thread = 0, stream = 0;
};

/// Adds submissions to a graph. Each is a task of the host thread, then the launch latency, during which other launches
/// may be on their way, then its work in the order of its stream. A stream holds HostConstants::queue_launches
/// submissions; the next one's dispatch waits until the first of them has ended.
class FrontEnd {
 public:
  FrontEnd(TaskGraph::Builder& builder, const HostConstants& constants, Recipes recipes)
      : builder_(builder), constants_(constants), recipes_(recipes) {}

  /// Hands over to a host thread's launches: one kernel, one copy, or a CUDA graph of many kernels. The thread waits
  /// for `host_after` before it launches, the stream for `stream_after` (events) before the first of the work. The
  /// tasks of the work, in order.
  std::vector<TaskId> submit(const Launched& launched, std::span<const BlockId> work, std::vector<TaskId> host_after,
                             std::vector<TaskId> stream_after, int repetition) {
    if (path_ < 0) add_path();
    std::vector<TaskId>& ends = ends_[launched.stream];
    const auto depth = static_cast<std::size_t>(constants_.queue_launches);
    if (ends.size() >= depth) host_after.push_back(ends[ends.size() - depth]);
    const TaskId dispatch = builder_.add_task({launched.dispatch, launched.thread, repetition}, host_after);
    stream_after.push_back(builder_.add_task({latency_, path_, repetition}, std::array{dispatch}));
    std::vector<TaskId> tasks;
    for (const BlockId block : work) {
      // Within a submission the stream's order is enough.
      tasks.push_back(builder_.add_task({block, launched.stream, repetition}, stream_after));
      stream_after.clear();
    }
    ends.push_back(tasks.back());
    last_of_thread_[launched.thread][launched.stream] = tasks.back();
    return tasks;
  }

  /// Adds the last task of each stream that this thread has launched: what it waits for when it synchronises.
  void append_launched_by(ResourceId thread, std::vector<TaskId>& tasks) const {
    const auto found = last_of_thread_.find(thread);
    if (found == last_of_thread_.end()) return;
    for (const auto& [stream, task] : found->second) tasks.push_back(task);
  }

 private:
  void add_path() {
    path_ = builder_.add_resource({"launches", Resource::Kind::launch_path, 0, Resource::Order::at_once});
    Block block{"launch", Category::host, launch_latency(constants_)};
    if (recipes_ == Recipes::kept) block.recipe = recipe_of(HostWork{.action = Action::launch});
    latency_ = builder_.add_block(std::move(block));
  }

  TaskGraph::Builder& builder_;
  const HostConstants& constants_;
  Recipes recipes_;
  ResourceId path_ = -1;
  BlockId latency_ = -1;
  std::map<ResourceId, std::vector<TaskId>> ends_;                     ///< by stream: of each submission
  std::map<ResourceId, std::map<ResourceId, TaskId>> last_of_thread_;  ///< by thread and stream
};

/// A task's blocks and queues, made once.
struct Entry {
  const ScenarioTask* task = nullptr;
  ResourceId on = 0;
  BlockId block = -1;     ///< if no host thread launches the task
  BlockId awaiting = -1;  ///< of a synchronize after launches
  std::optional<Launched> launched;
  std::vector<TaskId> instances;  ///< the end of each repetition so far
};

class TaskListBuilder {
 public:
  TaskListBuilder(const Scenario& scenario, const Topology& topology, const TasksWorkload& workload, Recipes recipes)
      : scenario_(scenario),
        topology_(topology),
        workload_(workload),
        recipes_(recipes),
        blocks_(scenario, topology, recipes),
        front_end_(builder_, scenario.calibration.host, recipes) {}
  TaskList run() &&;

 private:
  void number_shared_devices();
  void add_entry(const ScenarioTask& task);
  Launched launched(const ScenarioTask& task);
  void add_repetitions(Entry& entry);
  void add_launches(Entry& entry);
  void add_synchronize(Entry& entry, std::vector<TaskId> after);
  [[nodiscard]] std::vector<TaskId> predecessors(const Entry& entry, std::size_t repetition) const;
  [[nodiscard]] bool on_host(const std::string& id) const;
  ResourceId resource(const ScenarioTask& task, const std::string& place);
  BlockId host_block(const std::string& name, Seconds time, HostWork work);

  const Scenario& scenario_;
  const Topology& topology_;
  const TasksWorkload& workload_;
  Recipes recipes_;
  TaskBlocks blocks_;
  TaskGraph::Builder builder_;
  FrontEnd front_end_;
  std::map<std::string, ResourceId> resources_;
  std::map<std::string, int> shared_devices_;  ///< of GPUs with several streams
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t> entry_of_;
  std::size_t tasks_ = 0;
  TaskList list_;
};

/// GPUs on which more than one stream has work.
void TaskListBuilder::number_shared_devices() {
  std::map<std::string, std::set<std::string>> streams;
  const auto note = [&](const std::string& place) {
    if (is_stream(place)) streams[device_of(place)].insert(place);
  };
  for (const ScenarioTask& task : workload_.tasks) {
    note(task.on);
    if (const auto* fetched = std::get_if<FetchedResult>(&task.work)) note(fetched->copy.from);
  }
  for (const auto& [device, places] : streams) {
    if (places.size() > 1) shared_devices_.emplace(device, static_cast<int>(shared_devices_.size()));
  }
}

ResourceId TaskListBuilder::resource(const ScenarioTask& task, const std::string& place) {
  const auto known = resources_.find(place);
  if (known != resources_.end()) return known->second;
  const std::string device = device_of(place);
  const bool disk = device == "disk";
  const EndpointId where = disk ? topology_.gpus() : blocks_.endpoint(task, device, "on", 0);
  const bool host = where >= topology_.gpus();
  const bool engine = place.ends_with(":d2h") || place.ends_with(":h2d");
  Resource added{place,
                 disk   ? Resource::Kind::disk
                 : host ? Resource::Kind::host_thread
                        : (engine ? Resource::Kind::copy_engine : Resource::Kind::device_stream),
                 host ? 0 : where};
  const auto shared = shared_devices_.find(device);
  if (is_stream(place) && shared != shared_devices_.end()) added.device = shared->second;
  const ResourceId id = builder_.add_resource(std::move(added));
  resources_.emplace(place, id);
  return id;
}

BlockId TaskListBuilder::host_block(const std::string& name, Seconds time, HostWork work) {
  Block block{name, Category::host, time};
  if (recipes_ == Recipes::kept) block.recipe = recipe_of(work);
  return builder_.add_block(std::move(block));
}

Launched TaskListBuilder::launched(const ScenarioTask& task) {
  const HostConstants& host = scenario_.calibration.host;
  Launched result;
  const auto* fetched = std::get_if<FetchedResult>(&task.work);
  result.thread = resource(task, fetched ? task.on : task.enqueued_by);
  result.stream = resource(task, fetched ? fetched->copy.from : task.on);
  if (task.copy()) {
    result.kernels = {builder_.add_block(blocks_.copy_block(task))};
    const Seconds dispatch = host_dispatch_time(1, ExecutionMode::eager, host);
    result.dispatch = host_block(task.id + " dispatch", dispatch, {Action::dispatch, dispatch, {}, 1});
    if (fetched) {
      result.wait = builder_.add_block(blocks_.block_of(task));
    } else if (blocks_.host_waits_for(task)) {
      result.wait = host_block(task.id + " wait", synchronize_time(host), {Action::wait});
    }
    return result;
  }
  const LaunchPlan plan = blocks_.launches_of(task);
  const ExecutionMode mode = blocks_.mode_of(task);
  for (Block& block : blocks_.launch_blocks(task, plan)) result.kernels.push_back(builder_.add_block(std::move(block)));
  const bool graph = mode == ExecutionMode::cuda_graph;
  if (graph) {
    result.at_once = result.kernels.size();
    result.repetitions_together = !std::holds_alternative<ModelCall>(task.work);
  }
  const Seconds dispatch = host_dispatch_time(1, mode, host);
  const auto handed_over = static_cast<int>(result.at_once) * (result.repetitions_together ? task.repeat : 1);
  result.dispatch = host_block(task.id + " dispatch", dispatch, {Action::dispatch, dispatch, {}, handed_over, graph});
  if (std::holds_alternative<ModelCall>(task.work)) list_.calls.emplace(task.id, summary_of(plan, mode));
  return result;
}

void TaskListBuilder::add_entry(const ScenarioTask& task) {
  Entry entry;
  entry.task = &task;
  entry.on = resource(task, task.on);
  if (!task.enqueued_by.empty() || std::holds_alternative<FetchedResult>(task.work)) {
    entry.launched = launched(task);
  } else {
    entry.block = builder_.add_block(blocks_.block_of(task));
  }
  entry_of_.emplace(task.id, entries_.size());
  entries_.push_back(std::move(entry));
}

bool TaskListBuilder::on_host(const std::string& id) const {
  return entries_[entry_of_.at(id)].task->on.starts_with("cpu");
}

std::vector<TaskId> TaskListBuilder::predecessors(const Entry& entry, std::size_t repetition) const {
  std::vector<TaskId> after;
  for (const std::string& name : entry.task->after) {
    const auto found = entry_of_.find(name);
    if (found == entry_of_.end() || entries_[found->second].instances.empty() || name == entry.task->id) {
      throw ScenarioError(entry.task->where, "workload.tasks." + entry.task->id + ".after",
                          "no earlier task is called \"" + name + "\"", "name tasks above this one");
    }
    const Entry& before = entries_[found->second];
    const bool paired = before.task->loop == entry.task->loop && before.task->repeat == entry.task->repeat;
    after.push_back(paired ? before.instances[repetition] : before.instances.back());
  }
  return after;
}

/// Waits for what the thread has launched; a thread that launches nothing waits for `after` alone, at once.
void TaskListBuilder::add_synchronize(Entry& entry, std::vector<TaskId> after) {
  const std::size_t named = after.size();
  front_end_.append_launched_by(entry.on, after);
  BlockId block = entry.block;
  if (after.size() > named) {
    if (entry.awaiting < 0) {
      entry.awaiting = host_block(entry.task->id, synchronize_time(scenario_.calibration.host), {Action::synchronize});
    }
    block = entry.awaiting;
  }
  entry.instances.push_back(builder_.add_task({block, entry.on, static_cast<int>(entry.instances.size())}, after));
}

void TaskListBuilder::add_launches(Entry& entry) {
  const Launched& work = *entry.launched;
  const bool together = work.repetitions_together;
  std::vector<BlockId> kernels = work.kernels;
  for (int i = 1; together && i < entry.task->repeat; ++i) {
    kernels.insert(kernels.end(), work.kernels.begin(), work.kernels.end());
  }
  const std::size_t at_once = together ? kernels.size() : work.at_once;
  for (int i = 0; i < (together ? 1 : entry.task->repeat); ++i) {
    const auto repetition = static_cast<int>(entry.instances.size());
    std::vector<TaskId> host_after, stream_after;
    const std::vector<TaskId> after = predecessors(entry, entry.instances.size());
    for (std::size_t k = 0; k < after.size(); ++k) {
      (on_host(entry.task->after[k]) ? host_after : stream_after).push_back(after[k]);
    }
    std::vector<TaskId> done;
    for (std::size_t first = 0; first < kernels.size(); first += at_once) {
      done = front_end_.submit(work, std::span(kernels).subspan(first, at_once), std::exchange(host_after, {}),
                               std::exchange(stream_after, {}), repetition);
    }
    if (work.wait >= 0) {
      done.push_back(builder_.add_task({work.wait, work.thread, repetition}, std::vector{done.back()}));
    }
    const std::size_t of_repetition = together ? work.kernels.size() : done.size();
    for (std::size_t k = of_repetition; k <= done.size(); k += of_repetition) entry.instances.push_back(done[k - 1]);
  }
}

/// All repetitions of a task, in one turn of its loop if it has one.
void TaskListBuilder::add_repetitions(Entry& entry) {
  const ScenarioTask& task = *entry.task;
  const std::size_t kernels = entry.launched ? 3 * entry.launched->kernels.size() + 1 : 1;
  tasks_ += static_cast<std::size_t>(task.repeat) * kernels;
  if (tasks_ > most_tasks) {
    throw ScenarioError(task.where, "workload.tasks." + task.id + ".run",
                        "more than " + std::to_string(most_tasks) + " kernels and launches", "fewer repetitions");
  }
  const auto* host = std::get_if<HostWork>(&task.work);
  if (host && host->action == Action::synchronize) {
    for (int i = 0; i < task.repeat; ++i) add_synchronize(entry, predecessors(entry, entry.instances.size()));
  } else if (entry.launched) {
    add_launches(entry);
  } else {
    for (int i = 0; i < task.repeat; ++i) {
      const std::vector<TaskId> after = predecessors(entry, entry.instances.size());
      entry.instances.push_back(
          builder_.add_task({entry.block, entry.on, static_cast<int>(entry.instances.size())}, after));
    }
  }
}

TaskList TaskListBuilder::run() && {
  number_shared_devices();
  for (const ScenarioTask& task : workload_.tasks) add_entry(task);
  for (std::size_t first = 0; first < entries_.size();) {
    const int loop = entries_[first].task->loop;
    std::size_t end = first + 1;
    while (loop >= 0 && end < entries_.size() && entries_[end].task->loop == loop) ++end;
    const int turns = loop < 0 ? 1 : workload_.loops[static_cast<std::size_t>(loop)];
    for (int turn = 0; turn < turns; ++turn) {
      for (std::size_t i = first; i < end; ++i) add_repetitions(entries_[i]);
    }
    first = end;
  }
  for (const Entry& entry : entries_) {
    if (!entry.instances.empty()) list_.last[entry.task->id] = entry.instances.back();
  }
  list_.graph = std::move(builder_).build();
  return std::move(list_);
}

}  // namespace

TaskList build_task_list(const Scenario& scenario, const TasksWorkload& workload, const Topology& topology,
                         Recipes recipes) {
  return TaskListBuilder(scenario, topology, workload, recipes).run();
}

}  // namespace foretrain

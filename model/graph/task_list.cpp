#include "model/graph/task_list.hpp"

#include <optional>
#include <utility>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/collectives/contention.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/cost/storage.hpp"

namespace foretrain {

namespace {

/// The device part of "gpu3:stream1" is "gpu3".
std::string device_of(const std::string& place) { return place.substr(0, place.find(':')); }

class TaskListBuilder {
 public:
  TaskListBuilder(const Scenario& scenario, const Topology& topology) : scenario_(scenario), topology_(topology) {}
  TaskList run(const TasksWorkload& workload) &&;

 private:
  [[nodiscard]] EndpointId endpoint(const ScenarioTask& task, const std::string& device, const std::string& key,
                                    int nearest_gpu) const;
  [[nodiscard]] Block block_of(const ScenarioTask& task) const;
  [[nodiscard]] Block copy_block(const ScenarioTask& task) const;
  ResourceId resource(const ScenarioTask& task);

  const Scenario& scenario_;
  const Topology& topology_;
  TaskGraph::Builder builder_;
  std::map<std::string, ResourceId> resources_;
  std::map<std::string, std::vector<TaskId>> instances_;
};

EndpointId TaskListBuilder::endpoint(const ScenarioTask& task, const std::string& device, const std::string& key,
                                     int nearest_gpu) const {
  if (device == "cpu") return topology_.host_of_gpu(nearest_gpu);
  const bool gpu = device.starts_with("gpu");
  const std::optional<int> index = number_behind(device, gpu ? "gpu" : "cpu");
  if (!index || *index >= (gpu ? topology_.gpus() : scenario_.cluster.node.cpu.sockets)) {
    throw ScenarioError(task.where, "workload.tasks." + task.id + "." + key, "no device \"" + device + "\" here",
                        "write cpu or gpu0 … gpu" + std::to_string(topology_.gpus() - 1));
  }
  return gpu ? *index : topology_.host(0, *index);
}

Block TaskListBuilder::copy_block(const ScenarioTask& task) const {
  if (task.source == "disk" || task.destination == "disk") {
    const Storage& disk = scenario_.cluster.node.storage;
    if (!disk.exists()) {
      throw ScenarioError(task.where, "workload.tasks." + task.id + ".run.copy", "the node has no disk",
                          "describe it under storage: of the node");
    }
    DiskPattern pattern;
    pattern.block = task.size;
    pattern.write = task.destination == "disk";
    const Seconds time = disk_cost(disk, pattern).request;
    return {task.id, Category::data, time, time};
  }
  const bool from_gpu = task.source.starts_with("gpu");
  const int gpu =
      endpoint(task, from_gpu ? task.source : task.destination, from_gpu ? "run.copy.from" : "run.copy.to", 0);
  const int near = gpu < topology_.gpus() ? gpu : 0;
  const EndpointId source = endpoint(task, task.source, "run.copy.from", near);
  const EndpointId destination = endpoint(task, task.destination, "run.copy.to", near);
  const bool touches_host = source >= topology_.gpus() || destination >= topology_.gpus();
  if (touches_host && !task.pinned) {
    const Seconds time = task.size / BytesPerSecond(scenario_.calibration.host.pageable_copy_gbps * 1e9);
    return {task.id, Category::communication, time, time};
  }
  LoweredCollective lowered{"copy",
                            {{topology_.route(source, destination).latency, {{source, destination, task.size}}, 1}}};
  const Seconds time = isolated_time(lowered, topology_, scenario_.background);
  return {task.id, Category::communication, std::move(lowered), time};
}

Block TaskListBuilder::block_of(const ScenarioTask& task) const {
  switch (task.kind) {
    case ScenarioTask::Kind::copy:
      return copy_block(task);
    case ScenarioTask::Kind::sleep:
      return {task.id, Category::host, task.duration, task.duration};
    case ScenarioTask::Kind::synchronize:
      return {task.id, Category::host, Seconds(0.0), Seconds(0.0)};
    case ScenarioTask::Kind::page_lock: {
      const Seconds time = task.size / BytesPerSecond(scenario_.calibration.host.page_lock_gbps * 1e9);
      return {task.id, Category::host, time, time};
    }
    case ScenarioTask::Kind::op:
      break;
  }
  const std::string device = device_of(task.on);
  if (endpoint(task, device, "on", 0) >= topology_.gpus()) {
    throw ScenarioError(task.where, "workload.tasks." + task.id + ".on",
                        "operators run on GPUs, not on \"" + task.on + "\"", "write on: gpu0");
  }
  const Seconds time = operator_cost(task.op, scenario_.cluster.node.gpu, scenario_.calibration).device;
  return {task.id, Category::compute, time, time};
}

ResourceId TaskListBuilder::resource(const ScenarioTask& task) {
  const auto known = resources_.find(task.on);
  if (known != resources_.end()) return known->second;
  const std::string device = device_of(task.on);
  const bool disk = device == "disk";
  const EndpointId place = disk ? topology_.gpus() : endpoint(task, device, "on", 0);
  const bool host = place >= topology_.gpus();
  const bool engine = task.on.ends_with(":d2h") || task.on.ends_with(":h2d");
  const ResourceKind kind = disk   ? ResourceKind::disk
                            : host ? ResourceKind::host_thread
                                   : (engine ? ResourceKind::copy_engine : ResourceKind::device_stream);
  const ResourceId id = builder_.add_resource({task.on, kind, host ? 0 : place});
  resources_.emplace(task.on, id);
  return id;
}

TaskList TaskListBuilder::run(const TasksWorkload& workload) && {
  TaskList list{TaskGraph::Builder().build(), {}};
  for (const ScenarioTask& task : workload.tasks) {
    const BlockId block = builder_.add_block(block_of(task));
    const ResourceId on = resource(task);
    std::vector<TaskId>& own = instances_[task.id];
    for (int i = 0; i < task.repeat; ++i) {
      std::vector<TaskId> after;
      for (const std::string& name : task.after) {
        const auto found = instances_.find(name);
        if (found == instances_.end() || found->second.empty() || name == task.id) {
          throw ScenarioError(task.where, "workload.tasks." + task.id + ".after",
                              "no earlier task is called \"" + name + "\"", "name tasks that stand above this one");
        }
        const auto& before = found->second;
        const bool paired = static_cast<int>(before.size()) == task.repeat;
        after.push_back(paired ? before[static_cast<std::size_t>(i)] : before.back());
      }
      own.push_back(builder_.add_task({block, on, i}, after));
    }
    if (!own.empty()) list.last[task.id] = own.back();
  }
  list.graph = std::move(builder_).build();
  return list;
}

}  // namespace

TaskList build_task_list(const Scenario& scenario, const TasksWorkload& workload, const Topology& topology) {
  return TaskListBuilder(scenario, topology).run(workload);
}

}  // namespace foretrain

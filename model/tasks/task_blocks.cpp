#include "model/tasks/task_blocks.hpp"

#include <utility>

#include "model/base/error.hpp"
#include "model/base/text.hpp"
#include "model/collectives/contention.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/cost/storage.hpp"
#include "model/tasks/model_call.hpp"

namespace foretrain {

std::string device_of(const std::string& place) { return place.substr(0, place.find(':')); }

bool is_stream(const std::string& place) {
  const std::size_t colon = place.find(':');
  return place.starts_with("gpu") && (colon == std::string::npos || place.substr(colon).starts_with(":stream"));
}

EndpointId TaskBlocks::endpoint(const ScenarioTask& task, const std::string& device, const std::string& key,
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

Block TaskBlocks::copy_block(const ScenarioTask& task) const {
  Block block = copy(task);
  if (recipes_ == Recipes::kept) {
    block.recipe = recipe_of(CopyWork{device_of(task.source), device_of(task.destination), task.size, task.pinned});
  }
  return block;
}

Block TaskBlocks::copy(const ScenarioTask& task) const {
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
    return {task.id, Category::data, time};
  }
  const std::string from = device_of(task.source), to = device_of(task.destination);
  const bool from_gpu = from.starts_with("gpu");
  const int gpu = endpoint(task, from_gpu ? from : to, from_gpu ? "run.copy.from" : "run.copy.to", 0);
  const int near = gpu < topology_.gpus() ? gpu : 0;
  const EndpointId source = endpoint(task, from, "run.copy.from", near);
  const EndpointId destination = endpoint(task, to, "run.copy.to", near);
  const bool touches_host = source >= topology_.gpus() || destination >= topology_.gpus();
  if (touches_host && !task.pinned) {
    const Seconds time = task.size / BytesPerSecond(scenario_.calibration.host.pageable_copy_gbps * 1e9);
    return {task.id, Category::communication, time};
  }
  LoweredCollective lowered{"copy",
                            {{topology_.route(source, destination).latency, {{source, destination, task.size}}, 1}}};
  const Seconds time = uncontended_time(lowered, topology_, scenario_.background);
  return {task.id, Category::communication, time, std::move(lowered)};
}

Block TaskBlocks::block_of(const ScenarioTask& task) const {
  if (task.kind == ScenarioTask::Kind::copy) return copy_block(task);
  Block block = work(task);
  if (recipes_ == Recipes::kept) block.recipe = recipe_of(described(task, block.uncontended));
  return block;
}

RecipeWork TaskBlocks::described(const ScenarioTask& task, Seconds time) const {
  using Action = HostWork::Action;
  switch (task.kind) {
    case ScenarioTask::Kind::sleep:
      return HostWork{Action::sleep, time};
    case ScenarioTask::Kind::synchronize:
      return HostWork{Action::synchronize};
    case ScenarioTask::Kind::item:
      return HostWork{Action::wait};
    case ScenarioTask::Kind::print:
      return HostWork{Action::format, Seconds(scenario_.calibration.host.print_us * 1e-6), task.size};
    case ScenarioTask::Kind::page_lock:
      return HostWork{Action::page_lock, {}, task.size};
    case ScenarioTask::Kind::copy:
    case ScenarioTask::Kind::op:
    case ScenarioTask::Kind::call:
      break;
  }
  return PricedOperator{task.op, 1, time};
}

Block TaskBlocks::work(const ScenarioTask& task) const {
  using Kind = ScenarioTask::Kind;
  const HostConstants& host = scenario_.calibration.host;
  switch (task.kind) {
    case Kind::copy:
      return copy(task);
    case Kind::sleep:
      return {task.id, Category::host, task.duration};
    case Kind::synchronize:
      return {task.id, Category::host, Seconds(0.0)};
    case Kind::item:
    case Kind::print: {
      const Seconds formatting(task.kind == Kind::print ? host.print_us * 1e-6 : 0.0);
      const Seconds time = synchronize_time(host) + formatting;
      return {task.id, Category::host, time};
    }
    case Kind::page_lock: {
      const Seconds time = task.size / BytesPerSecond(host.page_lock_gbps * 1e9);
      return {task.id, Category::host, time};
    }
    case Kind::op:
    case Kind::call:
      break;
  }
  check_gpu(task);
  const Gpu& gpu = scenario_.cluster.node.gpu;
  const Seconds time = operator_cost(task.op, gpu, scenario_.calibration).device;
  return {task.id, Category::compute, time, {}, device_share(task.op, time, gpu, scenario_.calibration)};
}

ExecutionMode TaskBlocks::mode_of(const ScenarioTask& task) const {
  return task.call && task.call->execution ? *task.call->execution : scenario_.plan.execution;
}

LaunchPlan TaskBlocks::launches_of(const ScenarioTask& task) const {
  check_gpu(task);
  const Gpu& gpu = scenario_.cluster.node.gpu;
  const std::vector<Operator> ops = operators(task);
  if (task.call) return plan_call(ops, task.call->backward, mode_of(task), gpu, scenario_.calibration);
  return plan_launches(ops, mode_of(task), false, gpu, scenario_.calibration);
}

std::vector<Operator> TaskBlocks::operators(const ScenarioTask& task) const {
  return task.call ? operators_of(*task.call) : std::vector{task.op};
}

std::vector<Block> TaskBlocks::launch_blocks(const ScenarioTask& task, const LaunchPlan& plan) const {
  std::vector<Block> blocks;
  for (const Launch& launch : plan.launches) {
    blocks.push_back({task.call ? launch.name : task.id, Category::compute, launch.device, {}, launch.share});
  }
  if (recipes_ == Recipes::kept) {
    const std::vector<RecipePointer> recipes = recipes_of(plan, operators(task));
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i].recipe = recipes[i];
  }
  return blocks;
}

bool TaskBlocks::host_waits_for(const ScenarioTask& task) const {
  const bool to_or_from_host = !task.source.starts_with("gpu") || !task.destination.starts_with("gpu");
  return to_or_from_host && !task.pinned;
}

void TaskBlocks::check_gpu(const ScenarioTask& task) const {
  if (endpoint(task, device_of(task.on), "on", 0) < topology_.gpus()) return;
  throw ScenarioError(task.where, "workload.tasks." + task.id + ".on",
                      "operators run on GPUs, not on \"" + task.on + "\"", "write on: gpu0");
}

}  // namespace foretrain

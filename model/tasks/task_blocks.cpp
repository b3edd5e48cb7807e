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
  const CopyWork& work = *task.copy();
  Block block = copy(task, work);
  if (recipes_ == Recipes::kept) {
    block.recipe = recipe_of(CopyWork{device_of(work.from), device_of(work.to), work.size, work.pinned});
  }
  return block;
}

Block TaskBlocks::copy(const ScenarioTask& task, const CopyWork& work) const {
  if (work.from == "disk" || work.to == "disk") {
    const Storage& disk = scenario_.cluster.node.storage;
    if (!disk.exists()) {
      throw ScenarioError(task.where, "workload.tasks." + task.id + ".run.copy", "the node has no disk",
                          "describe it under storage: of the node");
    }
    DiskPattern pattern;
    pattern.block = work.size;
    pattern.write = work.to == "disk";
    const Seconds time = disk_cost(disk, pattern).request;
    return {task.id, Category::data, time};
  }
  const std::string from = device_of(work.from), to = device_of(work.to);
  const bool from_gpu = from.starts_with("gpu");
  const int gpu = endpoint(task, from_gpu ? from : to, from_gpu ? "run.copy.from" : "run.copy.to", 0);
  const int near = gpu < topology_.gpus() ? gpu : 0;
  const EndpointId source = endpoint(task, from, "run.copy.from", near);
  const EndpointId destination = endpoint(task, to, "run.copy.to", near);
  const bool touches_host = source >= topology_.gpus() || destination >= topology_.gpus();
  if (touches_host && !work.pinned) {
    const Seconds time = work.size / BytesPerSecond(scenario_.calibration.host.pageable_copy_gbps * 1e9);
    return {task.id, Category::communication, time};
  }
  LoweredCollective lowered{"copy",
                            {{topology_.route(source, destination).latency, {{source, destination, work.size}}, 1}}};
  const Seconds time = uncontended_time(lowered, topology_, scenario_.background);
  return {task.id, Category::communication, time, std::move(lowered)};
}

Block TaskBlocks::block_of(const ScenarioTask& task) const {
  if (const auto* work = std::get_if<HostWork>(&task.work)) return host_block(task.id, *work);
  if (const auto* fetched = std::get_if<FetchedResult>(&task.work)) return host_block(task.id, fetched->then);
  if (task.copy()) return copy_block(task);
  check_gpu(task);
  const Gpu& gpu = scenario_.cluster.node.gpu;
  const auto& op = std::get<Operator>(task.work);
  const Seconds time = operator_cost(op, gpu, scenario_.calibration).device;
  Block block{task.id, Category::compute, time, {}, device_share(op, time, gpu, scenario_.calibration)};
  if (recipes_ == Recipes::kept) block.recipe = recipe_of(PricedOperator{op, 1, time});
  return block;
}

Block TaskBlocks::host_block(const std::string& id, HostWork work) const {
  using Action = HostWork::Action;
  const HostConstants& host = scenario_.calibration.host;
  Seconds time;
  switch (work.action) {
    case Action::sleep:
      time = work.duration;
      break;
    case Action::wait:
      time = synchronize_time(host);
      break;
    case Action::format:
      work.duration = Seconds(host.print_us * 1e-6);
      time = synchronize_time(host) + work.duration;
      break;
    case Action::page_lock:
      time = work.size / BytesPerSecond(host.page_lock_gbps * 1e9);
      break;
    case Action::synchronize:  // with nothing that was launched
    case Action::dispatch:
    case Action::launch:
      break;
  }
  Block block{id, Category::host, time};
  if (recipes_ == Recipes::kept) block.recipe = recipe_of(work);
  return block;
}

ExecutionMode TaskBlocks::mode_of(const ScenarioTask& task) const {
  const auto* call = std::get_if<ModelCall>(&task.work);
  return call && call->execution ? *call->execution : scenario_.plan.execution;
}

LaunchPlan TaskBlocks::launches_of(const ScenarioTask& task) const {
  check_gpu(task);
  const Gpu& gpu = scenario_.cluster.node.gpu;
  const std::vector<Operator> ops = operators(task);
  if (const auto* call = std::get_if<ModelCall>(&task.work)) {
    return plan_call(ops, call->backward, mode_of(task), gpu, scenario_.calibration);
  }
  return plan_launches(ops, mode_of(task), false, gpu, scenario_.calibration);
}

std::vector<Operator> TaskBlocks::operators(const ScenarioTask& task) const {
  const auto* call = std::get_if<ModelCall>(&task.work);
  return call ? operators_of(*call) : std::vector{std::get<Operator>(task.work)};
}

std::vector<Block> TaskBlocks::launch_blocks(const ScenarioTask& task, const LaunchPlan& plan) const {
  const bool calls = std::holds_alternative<ModelCall>(task.work);
  std::vector<Block> blocks;
  for (const Launch& launch : plan.launches) {
    blocks.push_back({calls ? launch.name : task.id, Category::compute, launch.device, {}, launch.share});
  }
  if (recipes_ == Recipes::kept) {
    const std::vector<RecipePointer> recipes = recipes_of(plan, operators(task));
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i].recipe = recipes[i];
  }
  return blocks;
}

bool TaskBlocks::host_waits_for(const ScenarioTask& task) const {
  const CopyWork& work = *task.copy();
  const bool to_or_from_host = !work.from.starts_with("gpu") || !work.to.starts_with("gpu");
  return to_or_from_host && !work.pinned;
}

void TaskBlocks::check_gpu(const ScenarioTask& task) const {
  if (endpoint(task, device_of(task.on), "on", 0) < topology_.gpus()) return;
  throw ScenarioError(task.where, "workload.tasks." + task.id + ".on",
                      "operators run on GPUs, not on \"" + task.on + "\"", "write on: gpu0");
}

}  // namespace foretrain

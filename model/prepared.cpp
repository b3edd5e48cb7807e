#include "model/prepared.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "model/base/error.hpp"
#include "model/collectives/contention.hpp"
#include "model/cost/cpu_matmul.hpp"
#include "model/cost/memory_hierarchy.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/cost/storage.hpp"
#include "model/memory/memory.hpp"
#include "model/memory/memory_remedies.hpp"
#include "model/parallelism/layout.hpp"
#include "model/tasks/model_call.hpp"
#include "model/training/communication_ratio.hpp"
#include "model/training/train_loader.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

PreparedTrain prepare_train(const Scenario& scenario, const TrainWorkload& train, const Topology& topology,
                            Recipes recipes) {
  Model model = build_model(train.model, build_options(train, scenario.plan));
  Step step = build_step(scenario, train, model, topology, recipes);
  std::optional<ParameterStore> store;
  if (uses_store(scenario)) store = build_store(scenario, train, model, topology, step);
  return {std::move(model), std::move(step), std::move(store)};
}

PreparedCollective prepare_collective(const CollectiveWorkload& workload, const Scenario& scenario,
                                      const Topology& topology) {
  CollectiveCall call;
  call.operation = workload.operation;
  call.algorithm = scenario.plan.sync.algorithm;
  call.size = workload.size;
  call.levels = scenario.plan.sync.levels;
  call.servers = scenario.plan.sync.servers;
  call.placement = scenario.plan.sync.placement;
  const int group_size = workload.ranks / workload.groups;
  call.groups.resize(static_cast<std::size_t>(workload.groups));
  for (int r = 0; r < workload.ranks; ++r) {
    const int group = workload.layout == RankGrouping::strided ? r % workload.groups : r / group_size;
    call.groups[static_cast<std::size_t>(group)].push_back(r);
  }
  LoweredCollective lowered = lower(call, topology, scenario.calibration);
  return {std::move(call), std::move(lowered)};
}

PreparedOperator prepare_operator(const OperatorWorkload& workload, const Scenario& scenario) {
  const OperatorCost cost = operator_cost(workload.op, scenario.cluster.node.gpu, scenario.calibration);
  const auto n = static_cast<double>(workload.repeat);
  PreparedOperator prepared{cost.device * n, cost.flops * n, cost.bytes * n, std::string(name(cost.bound))};
  if (const auto* attention = std::get_if<Attention>(&workload.op.work)) {
    prepared.memory = attention_memory(*attention, workload.op.precision, scenario.cluster.node.gpu);
  }
  return prepared;
}

PreparedOperator prepare_host(const HostWorkload& workload, const Node& node) {
  const auto n = static_cast<double>(workload.repeat);
  if (const auto* walk = std::get_if<MemoryWalk>(&workload.work)) {
    const WalkCost cost = memory_walk_cost(*walk, node.cpu);
    return {cost.time * n, Flops(0.0), cost.bytes * n, cost.bound, cost.per_access};
  }
  if (const auto* chase = std::get_if<GpuChase>(&workload.work)) {
    const WalkCost cost = gpu_chase_cost(*chase, node.gpu);
    return {cost.time * n, Flops(0.0), cost.bytes * n, cost.bound, cost.per_access};
  }
  const CpuMatmulCost cost = cpu_matmul_cost(std::get<CpuMatmul>(workload.work), node.cpu);
  return {cost.time * n, cost.flops * n, cost.bytes * n, cost.bound};
}

PreparedOperator prepare_storage(const StorageWorkload& workload) {
  const DiskCost cost = disk_cost(workload.storage, workload.pattern);
  return {workload.size / cost.bandwidth, Flops(0.0), workload.size, std::string(name(cost.bound))};
}

PreparedLoader prepare_loader(const LoaderWorkload& workload, const Scenario& scenario, const Topology& topology) {
  PreparedLoader prepared;
  LoaderUse use;
  use.batch = workload.batch;
  const Bytes size = delivered_sample(workload.loader) * workload.batch;
  if (size > Bytes(0.0) && workload.loader.pinned && !workload.loader.transfer) {
    prepared.copy = copies_to_devices(size, topology, 1);
    use.transfer = uncontended_time(prepared.copy, topology, scenario.background);
  }
  prepared.pipeline = loader_pipeline(workload.loader, use, scenario.cluster.node, scenario.calibration);
  if (workload.loader.dataset) prepared.bytes = workload.loader.dataset->sample * workload.batch;
  return prepared;
}

/// Storage that the workload states; nothing where it is the node's.
const Storage* storage_of(const Workload& workload) {
  if (const auto* storage = std::get_if<StorageWorkload>(&workload)) return &storage->storage;
  const DataLoader* loader = nullptr;
  if (const auto* alone = std::get_if<LoaderWorkload>(&workload)) loader = &alone->loader;
  if (const auto* train = std::get_if<TrainWorkload>(&workload); train && train->loader) loader = &*train->loader;
  return loader != nullptr && loader->storage ? &*loader->storage : nullptr;
}

std::string bottleneck_of(const Breakdown& breakdown) {
  const std::array<std::pair<const char*, Seconds>, 6> parts = {
      {{"compute", breakdown.compute},
       {"exposed communication", breakdown.exposed_communication},
       {"pipeline bubble", breakdown.pipeline_bubble},
       {"data loading", breakdown.data_stall},
       {"host overhead", breakdown.host_overhead},
       {"optimizer", breakdown.optimizer}}};
  const auto largest =
      std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return largest->first;
}

/// Four of five measured cases lie between the two.
void set_uncertainty(StepResult& result, double share) {
  result.uncertainty_low = result.time() / (1.0 + share);
  result.uncertainty_high = result.time() * (1.0 + share);
}

}  // namespace

PreparedScenario::PreparedScenario(const Scenario& scenario, Recipes recipes)
    : scenario_(scenario), recipes_(recipes), topology_(scenario.cluster) {
  try {
    if (const auto* train = std::get_if<TrainWorkload>(&scenario.workload)) {
      work_ = prepare_train(scenario, *train, topology_, recipes);
    } else if (const auto* collective = std::get_if<CollectiveWorkload>(&scenario.workload)) {
      work_ = prepare_collective(*collective, scenario, topology_);
    } else if (const auto* op = std::get_if<OperatorWorkload>(&scenario.workload)) {
      work_ = prepare_operator(*op, scenario);
    } else if (const auto* host = std::get_if<HostWorkload>(&scenario.workload)) {
      work_ = prepare_host(*host, scenario.cluster.node);
    } else if (const auto* storage = std::get_if<StorageWorkload>(&scenario.workload)) {
      work_ = prepare_storage(*storage);
    } else if (const auto* loader = std::get_if<LoaderWorkload>(&scenario.workload)) {
      work_ = prepare_loader(*loader, scenario, topology_);
    } else {
      work_ = build_task_list(scenario, std::get<TasksWorkload>(scenario.workload), topology_, recipes);
    }
  } catch (const std::invalid_argument& error) {
    // What the hardware or a schedule cannot do was asked for by the scenario: point at its synchronisation.
    for (const char* key :
         {"workload.collective.algorithm", "plan.sync.algorithm", "workload.collective", "plan.sync"}) {
      const auto where = scenario.where.find(key);
      if (where != scenario.where.end()) throw ScenarioError(where->second, key, error.what(), "");
    }
    throw UsageError(error.what());
  }
}

TaskGraph PreparedScenario::collective_graph() const {
  const LoweredCollective& lowered = collective()->lowered;
  TaskGraph::Builder builder;
  Block made{"collective", Category::communication, lowered,
             uncontended_time(lowered, topology_, scenario_.background)};
  const CollectiveCall& call = collective()->call;
  if (recipes_ == Recipes::kept) {
    made.recipe = recipe_of(CollectiveWork{call.operation, call.size, static_cast<int>(call.groups.front().size()),
                                           call.algorithm, call.servers, call.placement});
  }
  const BlockId block = builder.add_block(std::move(made));
  const ResourceId stream = builder.add_resource({"collective", ResourceKind::communication_stream, 0});
  builder.add_task({block, stream, -1});
  return std::move(builder).build();
}

TaskGraph PreparedScenario::operator_graph() const {
  const auto& workload = std::get<OperatorWorkload>(scenario_.workload);
  const Seconds time = std::get<PreparedOperator>(work_).time;
  TaskGraph::Builder builder;
  Block block{workload.op.name, Category::compute, time, time};
  if (recipes_ == Recipes::kept) {
    const auto n = static_cast<double>(workload.repeat);
    block.recipe = recipe_of(KernelWork{workload.op, workload.repeat, time / n});
  }
  const BlockId id = builder.add_block(std::move(block));
  builder.add_task({id, builder.add_resource({"gpu0", ResourceKind::device_stream})});
  return std::move(builder).build();
}

StepResult PreparedScenario::empty_result(Fidelity fidelity) const {
  StepResult result;
  result.scenario = scenario_.name;
  result.fidelity = fidelity;
  const auto add = [&](const std::vector<Constant>& constants) {
    result.provenance.insert(result.provenance.end(), constants.begin(), constants.end());
  };
  add(scenario_.cluster.node.gpu.constants);
  add(scenario_.cluster.node.constants);
  if (std::holds_alternative<HostWorkload>(scenario_.workload)) add(scenario_.cluster.node.cpu.hierarchy_constants);
  if (const Storage* storage = storage_of(scenario_.workload)) add(storage->constants);
  add(scenario_.calibration.constants);
  result.warnings = scenario_.calibration.warnings;
  return result;
}

StepResult PreparedScenario::train_result(const StepTimes& times, Fidelity fidelity) const {
  const Step& step = train()->step;
  StepParts parts{step_time(step, times), breakdown_of(step, times), {}};
  parts.communication = communication_of(step, parts.breakdown);
  return step_result(std::move(parts), fidelity);
}

StepResult PreparedScenario::server_result(const ServerTimes& times, Fidelity fidelity) const {
  const ParameterStore& store = *train()->store;
  const StoreBounds bounds = store_bounds(store, topology_);
  StepParts parts;
  const Step& own = train()->step;
  parts.step_time = std::max(times.step + own.loader_serial, own.loader_interval);
  // An average worker's time: passes, dispatching and host work; it waits for messages and servers the rest.
  const Segment passes = store.compute();
  const Seconds busy = times.step * times.compute_share;
  Breakdown& b = parts.breakdown;
  b.host_overhead = busy * (passes.host / passes.total());
  b.compute = busy - b.host_overhead;
  b.host_overhead += std::min(store.host_between_steps, times.step - busy);
  b.compute += own.loader_device;
  b.data_stall = parts.step_time - times.step - own.loader_device;
  const Seconds rest = parts.step_time - b.total();
  b.exposed_communication = rest > 1e-9 * parts.step_time ? rest : Seconds(0.0);  // less is rounding
  const StoreTraffic traffic = store_traffic(store, topology_);
  const Seconds both = traffic.push + traffic.pull;
  const auto exposed = [&](Seconds total) { return std::min(total, b.exposed_communication * (total / both)); };
  if (both > Seconds(0.0)) {
    parts.communication["gradient push"] = {traffic.push, exposed(traffic.push)};
    parts.communication["weight pull"] = {traffic.pull, exposed(traffic.pull)};
  }
  ParameterServerResult servers;
  servers.workers = store.worker_count();
  servers.servers = store.server_count();
  servers.imbalance = store.imbalance;
  servers.staleness = times.staleness;
  servers.link_utilisation = std::min(1.0, bounds.link / parts.step_time);
  servers.cpu_utilisation = std::min(1.0, bounds.server / parts.step_time);
  servers.compute_bound = bounds.compute;
  servers.link_bound = bounds.link;
  servers.server_bound = bounds.server;
  StepResult result = step_result(std::move(parts), fidelity);
  result.parameter_server = servers;
  const Sync& sync = scenario_.plan.sync;
  if (sync.consistency == Sync::Consistency::bounded && sync.staleness > ParameterStore::most_lead &&
      !store.equal_workers()) {
    result.warnings.push_back(fmt::format(
        "a bound of {} is not reached within the iterations that are simulated: the speed is that of asynchronous "
        "training, until the fastest worker is that far ahead",
        sync.staleness));
  }
  return result;
}

StepResult PreparedScenario::step_result(StepParts parts, Fidelity fidelity) const {
  const auto& workload = std::get<TrainWorkload>(scenario_.workload);
  const PreparedTrain& prepared = *train();
  const Step& step = prepared.step;
  StepResult result = empty_result(fidelity);
  TrainResult r;
  r.step_time = parts.step_time;
  r.breakdown = parts.breakdown;
  r.communication = std::move(parts.communication);
  r.communication_to_compute = communication_ratio(scenario_, workload, step, topology_, r.breakdown, r.communication);
  r.samples_per_second = static_cast<double>(workload.global_batch) / r.step_time.value();
  r.tokens_per_second = r.samples_per_second * prepared.model.tokens_per_sample;
  const auto gpus = static_cast<double>(worker_gpus(scenario_.plan, scenario_.cluster));
  r.tokens_per_second_per_gpu = r.tokens_per_second / gpus;
  r.model_flops_per_second_per_gpu = step.model_flops_per_gpu * (scenario_.cluster.gpus() / gpus) / r.step_time;
  r.mfu = r.model_flops_per_second_per_gpu / scenario_.cluster.node.gpu.matrix_rate(workload.precision);
  if (const auto& batch = prepared.model.batch) {
    r.token_use = TokenUse{prepared.model.tokens_per_sample, batch->computed_tokens, batch->visual_tokens,
                           batch->images, step.slowest_replica};
  }
  r.memory = memory_footprint(scenario_, workload, prepared.model);
  r.bottleneck = bottleneck_of(r.breakdown);
  if (const ExecutionMode mode = scenario_.plan.execution; mode != ExecutionMode::eager) {
    r.execution = summary_of(
        plan_call(operators_of(prepared.model, true), true, mode, scenario_.cluster.node.gpu, scenario_.calibration),
        mode);
  }
  if (workload.training_samples) {
    r.time_to_train = Seconds(*workload.training_samples / r.samples_per_second);
    if (scenario_.cluster.usd_per_gpu_hour) {
      result.cost_usd = *scenario_.cluster.usd_per_gpu_hour * gpus * r.time_to_train->value() / 3600.0;
    }
  }
  if (step.loader && step.loader->memory > scenario_.cluster.node.cpu.memory) {
    result.warnings.push_back(
        fmt::format("the loader's workers need {:.1f} GB of a machine's memory, which has {:.1f} GB",
                    step.loader->memory.value() / 1e9, scenario_.cluster.node.cpu.memory.value() / 1e9));
  }
  if (!r.memory.fits()) {
    result.warnings.push_back(fmt::format("does not fit: {:.1f} GB needed, {:.1f} GB on {}",
                                          r.memory.total().value() / 1e9, r.memory.capacity.value() / 1e9,
                                          scenario_.cluster.node.gpu.name));
    for (std::string& remedy : remedies_for_memory(scenario_, workload)) result.warnings.push_back(std::move(remedy));
  }
  const Plan& plan = scenario_.plan;
  if (!scenario_.background.empty() && plan.tensor * plan.context * plan.expert > 1) {
    result.warnings.emplace_back(
        "collectives inside layers (tensor, context, expert) are priced without the background traffic");
  }
  result.train = std::move(r);
  set_uncertainty(result, scenario_.calibration.uncertainty.train);
  return result;
}

StepResult PreparedScenario::collective_result(Seconds time, Fidelity fidelity) const {
  const PreparedCollective& prepared = *collective();
  StepResult result = empty_result(fidelity);
  CollectiveResult r;
  r.time = time;
  r.chosen_algorithm = prepared.lowered.chosen_algorithm;
  if (time.value() > 0.0) r.algorithm_bandwidth = prepared.call.size / time;
  r.bus_bandwidth = r.algorithm_bandwidth * bus_bandwidth_factor(prepared.call.operation,
                                                                 static_cast<int>(prepared.call.groups.front().size()));
  result.collective = std::move(r);
  set_uncertainty(result, scenario_.calibration.uncertainty.collective);
  return result;
}

StepResult PreparedScenario::tasks_result(const Execution& execution, Fidelity fidelity) const {
  StepResult result = empty_result(fidelity);
  TasksResult r;
  r.time = execution.makespan;
  for (const auto& [id, task] : tasks()->last) r.finish[id] = execution.finish[static_cast<std::size_t>(task)];
  r.calls = tasks()->calls;
  result.tasks = std::move(r);
  set_uncertainty(result, scenario_.calibration.uncertainty.kernel);
  return result;
}

StepResult PreparedScenario::loader_result(Seconds time, Fidelity fidelity) const {
  StepResult result = empty_result(fidelity);
  const bool serial = loader()->pipeline.workers == 0;
  const std::string bound = serial ? "one process" : std::string(loader_bounds(loader()->pipeline).bottleneck());
  result.op = OperatorResult{time, Flops(0.0), loader()->bytes, bound};
  set_uncertainty(result, scenario_.calibration.uncertainty.kernel);
  return result;
}

StepResult PreparedScenario::operator_result(Fidelity fidelity) const {
  const auto& prepared = std::get<PreparedOperator>(work_);
  StepResult result = empty_result(fidelity);
  result.op = OperatorResult{prepared.time,  prepared.flops,      prepared.bytes,
                             prepared.bound, prepared.per_access, prepared.memory};
  set_uncertainty(result, scenario_.calibration.uncertainty.kernel);
  return result;
}

}  // namespace foretrain

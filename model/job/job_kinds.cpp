// Work that is a graph and what its times say: collectives, operators, input pipelines, tasks that are written out.
#include "model/job/job_kinds.hpp"

#include <array>
#include <functional>
#include <utility>

#include "model/collectives/contention.hpp"
#include "model/cost/cpu_matmul.hpp"
#include "model/cost/memory_hierarchy.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/cost/storage.hpp"
#include "model/loading/loader_graph.hpp"
#include "model/scenario/load/checks.hpp"
#include "model/tasks/task_list.hpp"
#include "model/training/pricing/train_loader.hpp"

namespace foretrain {

namespace {

class GraphJob final : public Job {
 public:
  GraphJob(const Scenario& scenario, Fidelity fidelity) : Job(scenario, fidelity) {}

  std::shared_ptr<const TaskGraph> tasks;
  std::function<void(const Execution& execution, Result& result)> add_times;

  void set_graph(TaskGraph graph) { tasks = std::make_shared<const TaskGraph>(std::move(graph)); }
  [[nodiscard]] const TaskGraph& graph() const override { return *tasks; }
  [[nodiscard]] Result read(const Execution& execution, const Executor&) const override {
    Result result = named_result();
    add_times(execution, result);
    return result;
  }
};

CollectiveCall call_of(const Scenario& scenario) {
  const auto& workload = std::get<CollectiveWorkload>(scenario.workload);
  CollectiveCall call;
  call.operation = workload.operation;
  call.algorithm = scenario.plan.sync.algorithm;
  call.size = workload.size;
  call.levels = scenario.plan.sync.levels;
  call.servers = scenario.plan.sync.servers;
  call.placement = scenario.plan.sync.placement;
  const int group_size = workload.ranks / workload.groups;
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(workload.groups));
  for (int r = 0; r < workload.ranks; ++r) {
    const int group = workload.layout == RankGrouping::strided ? r % workload.groups : r / group_size;
    groups[static_cast<std::size_t>(group)].push_back(r);
  }
  call.groups = groups;
  return call;
}

OperatorResult cost_of(const OperatorWorkload& workload, const Scenario& scenario) {
  const OperatorCost cost = cost_alone(workload, scenario.cluster.node.gpu, scenario.calibration);
  const auto n = static_cast<double>(workload.repeat);
  OperatorResult result{cost.device * n, cost.flops * n, cost.bytes * n, std::string(name(cost.bound))};
  if (const auto* attention = std::get_if<Attention>(&workload.op.work)) {
    result.memory = attention_memory(*attention, workload.op.precision, scenario.cluster.node.gpu);
  }
  return result;
}

OperatorResult cost_of(const HostWorkload& workload, const Scenario& scenario) {
  const Node& node = scenario.cluster.node;
  const auto n = static_cast<double>(workload.repeat);
  if (const auto* product = std::get_if<CpuMatmul>(&workload.work)) {
    const CpuMatmulCost cost = cpu_matmul_cost(*product, node.cpu);
    return {cost.time * n, cost.flops * n, cost.bytes * n, cost.bound};
  }
  const auto* chase = std::get_if<GpuChase>(&workload.work);
  const WalkCost cost = chase != nullptr ? gpu_chase_cost(*chase, node.gpu)
                                         : memory_walk_cost(std::get<MemoryWalk>(workload.work), node.cpu);
  return {cost.time * n, Flops(0.0), cost.bytes * n, cost.bound, cost.per_access};
}

OperatorResult cost_of(const Scenario& scenario) {
  if (const auto* op = std::get_if<OperatorWorkload>(&scenario.workload)) return cost_of(*op, scenario);
  if (const auto* host = std::get_if<HostWorkload>(&scenario.workload)) return cost_of(*host, scenario);
  const auto& workload = std::get<StorageWorkload>(scenario.workload);
  const DiskCost cost = disk_cost(workload.storage, workload.pattern);
  return {workload.size / cost.bandwidth, Flops(0.0), workload.size, std::string(name(cost.bound))};
}

/// One behind the other, each all of its times.
TaskGraph graph_of_operators(const OperatorWorkload& workload, const Scenario& scenario, Recipes recipes,
                             Resource device) {
  TaskGraph::Builder builder;
  const ResourceId stream = builder.add_resource(std::move(device));
  const std::vector<Operator> ops = workload.operators();
  const auto costs = costs_alone(workload, scenario.cluster.node.gpu, scenario.calibration);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Block block{ops[i].name, Category::compute, costs[i].device * static_cast<double>(workload.repeat)};
    if (recipes == Recipes::kept) block.recipe = recipe_of(PricedOperator{ops[i], workload.repeat, costs[i].device});
    builder.add_task({builder.add_block(std::move(block)), stream});
  }
  return std::move(builder).build();
}

}  // namespace

std::unique_ptr<Job> make_collective_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes) {
  auto job = std::make_unique<GraphJob>(scenario, fidelity);
  const CollectiveCall call = call_of(scenario);
  const auto ranks = static_cast<int>(call.groups.front().size());  // of one group
  LoweredCollective lowered = lower(call, job->topology(), scenario.calibration);
  const std::string chosen_algorithm = lowered.chosen_algorithm;
  const Seconds uncontended = uncontended_time(lowered, job->topology(), scenario.background);
  Block block{"collective", Category::communication, uncontended, std::move(lowered)};
  if (recipes == Recipes::kept) {
    block.recipe =
        recipe_of(collective_work(call.operation, call.size, ranks, call.algorithm, call.servers, call.placement));
  }
  job->set_graph(graph_of_one(std::move(block), {"collective", Resource::Kind::communication_stream}));
  job->add_times = [&scenario, size = call.size, operation = call.operation, ranks, chosen_algorithm](
                       const Execution& execution, Result& result) {
    auto& r = result.work.emplace<CollectiveResult>();
    r.time = execution.makespan;
    r.chosen_algorithm = chosen_algorithm;
    if (r.time > Seconds(0.0)) r.algorithm_bandwidth = size / r.time;
    r.bus_bandwidth = r.algorithm_bandwidth * bus_bandwidth_factor(operation, ranks);
    for (std::string& sentence : ignored_keys(scenario)) result.warnings.push_back(std::move(sentence));
  };
  return job;
}

std::unique_ptr<Job> make_operator_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes) {
  auto job = std::make_unique<GraphJob>(scenario, fidelity);
  const OperatorResult cost = cost_of(scenario);
  Resource device{"gpu0", Resource::Kind::device_stream};
  const auto* op = std::get_if<OperatorWorkload>(&scenario.workload);
  job->set_graph(op != nullptr ? graph_of_operators(*op, scenario, recipes, std::move(device))
                               : graph_of_one({"access", Category::compute, cost.time}, std::move(device)));
  job->add_times = [cost](const Execution& execution, Result& result) {
    result.work.emplace<OperatorResult>(cost).time = execution.makespan;
  };
  return job;
}

std::unique_ptr<Job> make_loader_job(const Scenario& scenario, Fidelity fidelity) {
  auto job = std::make_unique<GraphJob>(scenario, fidelity);
  const auto& [loader, batch] = std::get<LoaderWorkload>(scenario.workload);
  LoaderUse use;
  use.batch = batch;
  LoweredCollective copy;
  const Bytes size = delivered_sample(loader) * batch;
  const bool moves = size > Bytes(0.0) && loader.pinned && !loader.transfer;
  if (moves) {
    copy = copies_to_devices(size, job->topology(), std::array{0});
    use.transfer = uncontended_time(copy, job->topology(), scenario.background);
  }
  const LoaderPipeline pipeline = loader_pipeline(loader, use, scenario.cluster.node, scenario.calibration);
  const auto line = std::make_shared<const LoaderGraph>(
      build_loader_graph(pipeline, Seconds(0.0), moves ? &copy : nullptr, fidelity));
  const std::string bound = pipeline.workers == 0 ? "one process" : std::string(loader_bounds(pipeline).bottleneck());
  const Bytes stored = loader.dataset ? loader.dataset->sample * batch : Bytes(0.0);
  job->tasks = {line, &line->graph};
  job->add_times = [line, bound, stored](const Execution& execution, Result& result) {
    result.work = OperatorResult{loader_interval(*line, execution), Flops(0.0), stored, bound};
  };
  return job;
}

std::unique_ptr<Job> make_task_list_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes) {
  auto job = std::make_unique<GraphJob>(scenario, fidelity);
  const auto list = std::make_shared<const TaskList>(
      build_task_list(scenario, std::get<TasksWorkload>(scenario.workload), job->topology(), recipes));
  job->tasks = {list, &list->graph};
  job->add_times = [list](const Execution& execution, Result& result) {
    auto& r = result.work.emplace<TasksResult>();
    r.time = execution.makespan;
    for (const auto& [id, task] : list->last) r.finish[id] = execution.finish[static_cast<std::size_t>(task)];
    r.calls = list->calls;
  };
  return job;
}

}  // namespace foretrain

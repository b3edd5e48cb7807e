#include <string>
#include <utility>

#include "model/cost/cpu_matmul.hpp"
#include "model/cost/memory_hierarchy.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/cost/storage.hpp"
#include "model/job/job_kinds.hpp"

namespace foretrain {

namespace {

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

OperatorResult cost_of(const StorageWorkload& workload, const Scenario&) {
  const DiskCost cost = disk_cost(workload.storage, workload.pattern);
  return {workload.size / cost.bandwidth, Flops(0.0), workload.size, std::string(name(cost.bound))};
}

OperatorResult cost_of(const Scenario& scenario) {
  if (const auto* op = std::get_if<OperatorWorkload>(&scenario.workload)) return cost_of(*op, scenario);
  if (const auto* host = std::get_if<HostWorkload>(&scenario.workload)) return cost_of(*host, scenario);
  return cost_of(std::get<StorageWorkload>(scenario.workload), scenario);
}

/// One behind the other, each all of its times.
TaskGraph graph_of_operators(const OperatorWorkload& workload, const Scenario& scenario, bool with_recipes,
                             Resource device) {
  TaskGraph::Builder builder;
  const ResourceId stream = builder.add_resource(std::move(device));
  const std::vector<Operator> ops = workload.operators();
  const auto costs = costs_alone(workload, scenario.cluster.node.gpu, scenario.calibration);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Block block{ops[i].name, Category::compute, costs[i].device * static_cast<double>(workload.repeat)};
    if (with_recipes) block.recipe = recipe_of(PricedOperator{ops[i], workload.repeat, costs[i].device});
    builder.add_task({builder.add_block(std::move(block)), stream});
  }
  return std::move(builder).build();
}

class OperatorJob final : public Job {
 public:
  OperatorJob(const Scenario& scenario, Fidelity fidelity, Recipes recipes)
      : Job(scenario, fidelity), cost_(cost_of(scenario)) {
    Resource device{"gpu0", Resource::Kind::device_stream};
    const auto* op = std::get_if<OperatorWorkload>(&scenario.workload);
    graph_ = op != nullptr ? graph_of_operators(*op, scenario, recipes == Recipes::kept, std::move(device))
                           : graph_of_one({"access", Category::compute, cost_.time}, std::move(device));
  }

  [[nodiscard]] const TaskGraph& graph() const override { return graph_; }

  [[nodiscard]] Result read(const Execution& execution, const Executor&) const override {
    Result result = named_result();
    result.work.emplace<OperatorResult>(cost_).time = execution.makespan;
    return result;
  }

 private:
  OperatorResult cost_;
  TaskGraph graph_;
};

}  // namespace

std::unique_ptr<Job> make_operator_job(const Scenario& scenario, Fidelity fidelity, Recipes recipes) {
  return std::make_unique<OperatorJob>(scenario, fidelity, recipes);
}

}  // namespace foretrain

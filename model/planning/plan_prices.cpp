#include "model/planning/plan_prices.hpp"

#include "model/parallelism/layout.hpp"

namespace foretrain {

PlanPrices::Key PlanPrices::key_of(const Scenario& scenario, const TrainWorkload& train) {
  const Plan& plan = scenario.plan;
  Key key{.tensor = plan.tensor, .context = plan.context, .expert = plan.expert};
  // Casts of weights to 8 bits and less are shared by a replica's micro-batches, and one process may drive many GPUs.
  if (plan.single_process || bytes_per_element(train.precision) < bytes_per_element(Precision::bf16)) {
    key.replicas = plan.data;
  }
  key.gpus = RankLayout(plan).gpus();
  key.micro_batch = train.micro_batch;
  key.sequence_parallel = plan.sequence_parallel;
  key.tensor_overlap = plan.tensor_overlap;
  key.folded_experts = plan.folded_experts;
  key.single_process = plan.single_process;
  key.sharded = plan.zero == 3;
  key.copied = key.sharded && plan.sync.copied && shards_of(plan) > 1;
  key.reshard_after_forward = key.copied && plan.reshard_after_forward;
  key.waits_for_slowest = plan.sync.waits_for_slowest();
  key.execution = plan.execution;
  return key;
}

const std::vector<PlanPrices::Group>& PlanPrices::of(const Scenario& scenario,
                                                     const std::function<const Model&()>& model) {
  const auto& train = std::get<TrainWorkload>(scenario.workload);
  Known& known = known_[key_of(scenario, train)];
  if (const auto whole = known.whole.find(train.recompute); whole != known.whole.end()) return whole->second;
  const LayerPricer pricer(scenario, train);
  std::vector<Group> groups;
  for (const LayerGroup& group : model().layers) {
    std::vector<LayerCost>& costs = known.without_recomputation;
    if (costs.size() == groups.size()) costs.push_back(pricer.without_recomputation(group.layer));
    groups.push_back({pricer.with_recomputation(costs[groups.size()], group.layer), group.repeat});
  }
  return known.whole.emplace(train.recompute, std::move(groups)).first->second;
}

}  // namespace foretrain

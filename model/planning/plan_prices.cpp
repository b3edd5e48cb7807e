#include "model/planning/plan_prices.hpp"

#include <utility>

namespace foretrain {

namespace {

/// Casts of weights to 8 bits and less are shared by a replica's micro-batches, and one process may drive many GPUs.
bool replicas_matter(const TrainWorkload& train, const Plan& plan) {
  return plan.single_process || bytes_per_element(train.precision) < bytes_per_element(Precision::bf16);
}

}  // namespace

const std::vector<LayerCost>& PlanPrices::of(const Scenario& scenario, const TrainWorkload& train,
                                             const std::function<const Model&()>& model) {
  const Plan& plan = scenario.plan;
  const Layers layers{
      plan.tensor,       plan.context,           plan.expert,         replicas_matter(train, plan) ? plan.data : 0,
      train.micro_batch, plan.sequence_parallel, plan.tensor_overlap, plan.zero == 3};
  const std::pair key{layers, train.recompute};
  if (const auto known = whole_.find(key); known != whole_.end()) return known->second;
  const LayerPricer pricer(scenario, train);
  std::vector<LayerCost> whole;
  std::vector<LayerCost>& passes = without_recomputation_[layers];
  for (std::size_t group = 0; group < model().layers.size(); ++group) {
    const Layer& layer = model().layers[group].layer;
    if (passes.size() == group) passes.push_back(pricer.without_recomputation(layer));
    whole.push_back(pricer.with_recomputation(passes[group], layer));
  }
  return whole_.emplace(key, std::move(whole)).first->second;
}

}  // namespace foretrain

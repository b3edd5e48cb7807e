// What layers take on one GPU, kernels and dispatch: the same for all layouts that divide them alike, however many
// stages and replicas there are. Worked out once and shared by them.
#pragma once

#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "model/training/layer_cost.hpp"

namespace foretrain {

class PlanPrices {
 public:
  /// Of each group of layers. `model`: asked for where they are not known.
  const std::vector<LayerCost>& of(const Scenario& scenario, const TrainWorkload& train,
                                   const std::function<const Model&()>& model);

 private:
  /// Tensor, context and expert parallelism; replicas where they matter; micro-batch, sequence parallelism, whether
  /// products hide its collectives, ZeRO-3.
  using Layers = std::tuple<int, int, int, int, std::int64_t, bool, bool, bool>;
  std::map<Layers, std::vector<LayerCost>> without_recomputation_;
  std::map<std::pair<Layers, Recompute>, std::vector<LayerCost>> whole_;
};

}  // namespace foretrain

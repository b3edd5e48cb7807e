// What layers take on one GPU, kernels and dispatch: the same for all layouts that divide them alike, however many
// stages and replicas there are. Worked out once and shared by them.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <vector>

#include "model/training/pricing/layer_cost.hpp"

namespace foretrain {

class PlanPrices {
 public:
  struct Group {
    LayerCost cost;  ///< of each layer
    int repeat = 1;  ///< of these
  };
  /// The model's groups of layers. `model`: asked for where they are not known.
  const std::vector<Group>& of(const Scenario& scenario, const std::function<const Model&()>& model);

 private:
  /// All of a plan that decides what layers take without recomputation, where the rest of the scenario is the same.
  struct Key {
    int tensor = 1, context = 1, expert = 1;
    int replicas = 0;  ///< where they matter
    int gpus = 0;      ///< the more there are, the slower is the slowest
    std::int64_t micro_batch = 1;
    bool sequence_parallel = false, tensor_overlap = false, folded_experts = false, single_process = false;
    bool sharded = false, copied = false, reshard_after_forward = false;  ///< weights, by ZeRO-3
    bool waits_for_slowest = true;
    ExecutionMode execution = ExecutionMode::eager;
    auto operator<=>(const Key&) const = default;
  };
  static Key key_of(const Scenario& scenario, const TrainWorkload& train);

  struct Known {
    std::vector<LayerCost> without_recomputation;
    std::map<Recompute, std::vector<Group>> whole;
  };
  std::map<Key, Known> known_;
};

}  // namespace foretrain

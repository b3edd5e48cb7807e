// Prices the layers of a model on a cluster: kernels, dispatch, and the collectives inside a layer.
#pragma once

#include "model/parallelism/layout.hpp"
#include "model/training/step.hpp"

namespace foretrain {

/// One layer, one micro-batch, one rank. Kernel and dispatch times are kept apart because dispatch runs ahead of the
/// device: only sums over many layers can be compared (see joined()).
struct LayerCost {
  Seconds forward_kernels, backward_kernels;  ///< backward: without recomputation
  Seconds forward_dispatch, backward_dispatch;
  Seconds forward_collectives, backward_collectives;  ///< exposed part
  Seconds recompute_kernels, recompute_dispatch, recompute_collectives;

  LayerCost& operator+=(const LayerCost& other);
  friend LayerCost operator*(LayerCost cost, double n);
  [[nodiscard]] Segment forward() const;
  [[nodiscard]] Segment backward() const;  ///< with recomputation
};

/// Prices layers of one plan; collectives of equal size are priced once.
class LayerPricer {
 public:
  LayerPricer(const Scenario& scenario, const TrainWorkload& train, const Topology& topology,
              Recipes recipes = Recipes::none);

  [[nodiscard]] LayerCost price(const Layer& layer);
  /// Kernels of one list of operators on this device in the plan's execution mode, without overlap between them.
  [[nodiscard]] Seconds kernels(const std::vector<Operator>& ops) const;
  [[nodiscard]] Seconds dispatch(const std::vector<Operator>& ops) const;
  /// What kernels() prices; nothing where recipes are not kept, or there is nothing to do.
  [[nodiscard]] RecipePointer recipe(const std::vector<Operator>& ops) const;
  /// Operators of the backward pass, those that run again before it included.
  [[nodiscard]] std::vector<Operator> backward_operators(const Layer& layer) const;
  [[nodiscard]] bool keeps_recipes() const { return recipes_ == Recipes::kept; }

 private:
  [[nodiscard]] Seconds collective(const LayerCollective& call);
  [[nodiscard]] const std::vector<Operator>& recomputed(const Layer& layer) const;

  const Scenario& scenario_;
  const TrainWorkload& train_;
  const Topology& topology_;
  RankLayout layout_;
  Recipes recipes_;
};

/// The groups of all ranks that repeat within one node or one group, whichever is larger: what runs there, runs
/// everywhere.
int representative_window(const Topology& topology, int group_size);

}  // namespace foretrain

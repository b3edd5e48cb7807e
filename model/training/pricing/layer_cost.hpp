// Prices the layers of a model on a cluster: kernels, dispatch, and the collectives inside a layer.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "model/cost/launches.hpp"
#include "model/training/pricing/tensor_overlap.hpp"
#include "model/training/step/step.hpp"
#include "model/training/transfers/transfer_table.hpp"

namespace foretrain {

/// A forward pass of experts that the host has to wait for: how many tokens each expert has is known on the device, and
/// the host reads it back before it launches what depends on it (Megatron-Core, transformer/moe/token_dispatcher.py,
/// tokens_per_expert.to("cpu") and the event that is waited for). The queue of launches is empty then. Three parts
/// from one layer's counts to the next one's, layers being alike: kernels up to the expert all-to-all, the experts'
/// own, and those behind the exchange back, with the next layer's attention and router.
using CountedPass = std::array<LaunchTotals, 3>;

/// To which of the parts operators belong.
std::array<std::vector<Operator>, 3> operators_around_counts(const Layer& layer);

/// Time by which a layer takes longer than the longer of its launches and its kernels with `exchanges`. With h and d
/// those of a stretch, and H the host's time until then, the device is done with it at
///   t = max(t + d, H + launch latency)
/// beginning a launch latency behind the counts. Each of the two exchanges follows its stretch. The host has the next
/// counts when the last kernel is done and seen.
Seconds idle_behind_counts(const CountedPass& pass, Seconds exchanges, const HostConstants& constants);

/// One kind of pass of a layer with one micro-batch on one rank. Kernel and dispatch times are kept apart because
/// dispatch runs ahead of the device: only sums over many layers can be compared (see time_breakdown()).
struct LayerPassCost : Inside {  // its host: until that has launched again what counts of tokens held up
  Seconds kernels = {}, dispatch = {};
  Seconds gain = {};  ///< by how much expert all-to-alls behind other passes make it shorter

  LayerPassCost& operator+=(const LayerPassCost& other);
  friend LayerPassCost operator+(LayerPassCost a, const LayerPassCost& b) { return a += b; }
  friend LayerPassCost operator*(LayerPassCost cost, double n);
  [[nodiscard]] TimeBreakdown time_breakdown() const;
};

struct LayerCost {
  LayerPassCost forward, recompute, backward;  ///< backward: without what runs again before it
  std::optional<CountedPass> counted = {};     ///< of one layer: a forward pass that waits for counts of tokens
  bool counted_again = false;                  ///< as it does where it runs again before the backward pass

  LayerCost& operator+=(const LayerCost& other);
  friend LayerCost operator*(const LayerCost& cost, double n);
  [[nodiscard]] LayerPassCost whole_backward() const { return backward + recompute; }
  [[nodiscard]] Seconds both_ways() const {
    return forward.time_breakdown().total() + whole_backward().time_breakdown().total();
  }
};

/// Layers in their place: what each costs on one rank class.
struct PricedLayer {
  const Layer* layer = nullptr;
  LayerCost cost;
  std::shared_ptr<const LayerCalls> calls;
  int count = 1;  ///< alike, one after the other

  /// The pass of so many of them.
  [[nodiscard]] PassCost::Part part(bool backward, int times) const {
    const Seconds again = backward ? cost.recompute.kernels : Seconds(0.0);
    return {again, (backward ? cost.backward : cost.forward).kernels, calls, backward, 0.0, 1.0, times};
  }
};

/// Trainable tensors of a layer: its matrices, and a vector beside each (biases, scales of norms).
int tensors_of(const Layer& layer);

class LayerPricer {
 public:
  LayerPricer(const Scenario& scenario, const TrainWorkload& train, Recipes recipes = Recipes::none);

  /// Kernels and dispatch, on devices of full speed.
  [[nodiscard]] LayerCost price(const Layer& layer) const;
  /// The same in two: forward and backward pass; what runs again before the latter.
  [[nodiscard]] LayerCost without_recomputation(const Layer& layer) const;
  [[nodiscard]] LayerCost with_recomputation(LayerCost cost, const Layer& layer) const;
  /// The collectives on the ranks of `stage` of a layer of that price.
  [[nodiscard]] LayerCalls calls(const Layer& layer, const LayerCost& cost, int stage, TransferTable& transfers) const;
  /// `cost` on devices of `speed`, with what the calls leave exposed on `rank_class`.
  [[nodiscard]] LayerCost on_class(LayerCost cost, const LayerCalls& calls, double speed, int rank_class,
                                   const TransferTable& transfers) const;
  /// Kernels of one list of operators on this device in the plan's execution mode, without overlap between them.
  [[nodiscard]] Seconds kernels(const std::vector<Operator>& ops) const { return cost_of(ops).kernels; }
  /// Time of the operators that only stream memory.
  [[nodiscard]] Seconds memory_bound(const std::vector<Operator>& ops) const;
  [[nodiscard]] Seconds dispatch(const std::vector<Operator>& ops) const { return cost_of(ops).dispatch; }
  /// Recipe that kernels() prices; null if recipes are not kept, or without work.
  [[nodiscard]] RecipePointer recipe(const std::vector<Operator>& ops) const;
  /// Operators of the backward pass, those that run again before it included.
  [[nodiscard]] std::vector<Operator> backward_operators(const Layer& layer) const;
  [[nodiscard]] bool keeps_recipes() const { return recipes_ == Recipes::kept; }

 private:
  /// Whether collectives of tensor ranks are chunked behind products.
  [[nodiscard]] bool chunks_products() const { return scenario_.plan.tensor_overlap && scenario_.plan.tensor > 1; }
  /// Additional compute time of a CPU after it has waited for these.
  [[nodiscard]] Seconds cold_cache_penalty(const PassCalls& calls, double speed) const;
  [[nodiscard]] std::vector<Operator> gradient_sums(const Layer& layer) const;
  /// Copies of a sharded layer's weights before a pass.
  [[nodiscard]] std::vector<Operator> weight_copies(const Layer& layer, bool backward) const;
  [[nodiscard]] LayerPassCost cost_of(const std::vector<Operator>& ops, Seconds around_launch = {}) const;
  /// The same with what eager code does beside the operators of a pass.
  [[nodiscard]] LayerPassCost pass_cost(const std::vector<Operator>& ops, Seconds around_launch) const;
  [[nodiscard]] Seconds dispatch(const std::vector<LayerCollective>& collectives, Seconds around_launch) const;
  [[nodiscard]] Seconds around_launches(const Layer& layer) const;
  [[nodiscard]] CountedPass counted_pass(const Layer& layer) const;
  /// Products done in as many chunks as there are tensor ranks.
  [[nodiscard]] Seconds chunked_kernels(const std::vector<Operator>& products) const;
  void add_chunks(const std::vector<Operator>& pass, bool backward, LayerPassCost& cost) const;
  [[nodiscard]] std::span<const std::vector<Operator>> hiding_products(const LayerCollective& collective,
                                                                       const OverlappedProducts& overlapped,
                                                                       const std::vector<Operator>& pass,
                                                                       bool backward) const;
  [[nodiscard]] PassCalls pass_calls(const std::vector<LayerCollective>& collectives, const std::vector<Operator>& pass,
                                     bool backward, Seconds of_pass, int stage, TransferTable& transfers) const;

  const Scenario& scenario_;
  const TrainWorkload& train_;
  Recipes recipes_;
  double slowdown_;             ///< of kernels, over the same alone
  Seconds framework_overhead_;  ///< framework code at a block's pass
  Gpu gpu_;
};

}  // namespace foretrain

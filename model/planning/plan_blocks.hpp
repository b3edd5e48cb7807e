// The blocks of one layout's plans: what layers take is worked out once and shared by all plans that differ in other
// things.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "model/memory/memory.hpp"
#include "model/parallelism/stages.hpp"
#include "model/planning/plan_bound.hpp"
#include "model/planning/plan_prices.hpp"
#include "model/planning/plan_space.hpp"
#include "model/training/layer_cost.hpp"
#include "model/training/transfer_table.hpp"

namespace foretrain {

class PlanBlocks {
 public:
  /// Throws ScenarioError where the layout is impossible.
  PlanBlocks(const PlanSpace& space, const PlanPoint& layout, PlanPrices& prices);

  /// The scenario takes the point's values; what a reader makes of ZeRO and synchronisation is read once for each.
  void take(const PlanPoint& point);

  /// Bounds of the plan taken: by kernels alone, over any pipeline; by all that a pass of its schedule does, with its
  /// own ZeRO or any; by its passes in their order; and by what comes after them as well, with its own synchronisation
  /// or any.
  [[nodiscard]] Seconds kernels_bound();
  [[nodiscard]] Seconds passes_bound(bool any_sharding);
  [[nodiscard]] Seconds order_bound();
  [[nodiscard]] Seconds ends_bound(bool any_synchronisation);
  /// What it needs at least, however gradients are synchronised; where weights, gradients and the optimizer's states
  /// alone are too much, these.
  [[nodiscard]] MemoryFootprint least_memory();
  [[nodiscard]] bool states_fit();
  [[nodiscard]] MemoryFootprint memory() { return memory_footprint(scenario_, train(), model()); }
  /// What the step's graph takes; nothing where `hopeless` says so of a bound by all blocks of the step.
  [[nodiscard]] std::optional<Seconds> estimate(const std::function<bool(Seconds bound)>& hopeless);

 private:
  /// ZeRO, the algorithm with servers and where they stand, buckets, overlap.
  using Synchronised = std::tuple<int, SyncAlgorithm, int, ServerPlacement, int, bool>;
  /// What a reader makes of these where the scenario leaves it open.
  using Habits =
      std::tuple<Bytes, Bytes, Sync::Bucketing, Precision, bool, ExecutionMode, bool, bool, Sync::Gather, bool, ZeroBy>;
  [[nodiscard]] Habits habits() const {
    const Plan& plan = scenario_.plan;
    const Sync& sync = plan.sync;
    return {sync.bucket,
            sync.first_bucket,
            sync.bucketing,
            sync.gradient_precision,
            synchronises_every_micro_batch(plan),
            plan.execution,
            plan.single_process,
            train().master_weights,
            sync.gather,
            sync.gather_overlap,
            plan.zero_by};
  }
  /// ZeRO-1 and 2 differ in memory alone, in what a reader makes of them, and in when gradients leave (Habits).
  [[nodiscard]] static int zero_in_time(int zero) { return zero == 2 ? 1 : zero; }
  struct Variant {
    Plan plan;
    bool master_weights = false;
  };
  /// Whether ZeRO divides weights, too; or whichever is less, part by part.
  enum class Weights { whole, sharded, any };
  /// A layer by itself and with its collectives; these alone, and what they cost kernels beside which all would run.
  struct LayerTimes {
    struct Moving {
      Seconds time, cost;
      void add(const Moving& other, double count) {
        time += other.time * count;
        cost += other.cost * count;
      }
      [[nodiscard]] double slowdown() const { return time > Seconds(0.0) ? cost / time : 0.0; }
    };
    LayerCost alone, in_pass;
    Moving forward, backward;
    Seconds weights;  ///< gathered for both passes, and their gradients scattered
    bool exact = false;
  };
  /// Micro-batch, sequence parallelism, whether products hide its collectives, ZeRO-3.
  using Built = std::tuple<std::int64_t, bool, bool, bool>;
  /// And recomputation, weights, what of a pass lies on the host, how tokens reach experts and whether they hide.
  using Costed = std::tuple<Built, Recompute, Weights, int, ExpertDispatch, bool>;

  static Synchronised synchronised(const PlanPoint& point) {
    return {point.zero, point.algorithm, point.servers, point.placement, point.bucket, point.overlap};
  }
  /// ZeRO, what lies on the host, chunks of a stage, whether it holds chunks of both ends, and whether several
  /// micro-batches add up gradients.
  using Stored = std::tuple<int, int, int, bool, bool>;
  [[nodiscard]] Stored stored() const {
    const Plan& plan = scenario_.plan;
    const bool both_ends = plan.schedule == PipelineSchedule::dualpipe;
    return {plan.zero, point_.offload, plan.interleave, both_ends, micro_batches(train(), plan) > 1};
  }
  [[nodiscard]] TrainWorkload& train() { return std::get<TrainWorkload>(scenario_.workload); }
  [[nodiscard]] const TrainWorkload& train() const { return std::get<TrainWorkload>(scenario_.workload); }
  [[nodiscard]] Weights own_weights() const { return scenario_.plan.zero == 3 ? Weights::sharded : Weights::whole; }
  [[nodiscard]] Built built() const {
    return {train().micro_batch, scenario_.plan.sequence_parallel, scenario_.plan.tensor_overlap,
            scenario_.plan.zero == 3};
  }
  [[nodiscard]] Costed costed(Weights weights) const {
    const Plan::Offload& offload = scenario_.plan.offload;
    const int on_host = weights == Weights::any ? 0 : (offload.parameters ? 1 : 0) + (offload.activations ? 2 : 0);
    const Plan& plan = scenario_.plan;
    return {built(), train().recompute, weights, on_host, plan.expert_dispatch, hides_exchanges(plan)};
  }
  [[nodiscard]] const Model& model();
  [[nodiscard]] const std::vector<std::vector<LayerRun>>& chunks();
  [[nodiscard]] std::optional<Step> blocks(Symmetry symmetry = Symmetry::used);
  [[nodiscard]] std::vector<LayerCost> kernels(Weights weights);
  [[nodiscard]] const std::vector<LayerTimes>& costs(Weights weights);
  void add_sharding(const LayerPricer& pricer, const Layer& layer, const LayerCalls& calls, LayerTimes& times);
  [[nodiscard]] const PassTimes& pass_times(Weights weights);
  void add_parts(PassTimes& times, Weights weights);
  [[nodiscard]] const std::vector<Seconds>* gradients_to_host();
  [[nodiscard]] Seconds bound_by(const PipelineParts& parts) const;
  /// The least bound where a trainer may hide the collectives of tensor ranks or may not.
  template <typename Bound>
  [[nodiscard]] Seconds least_of_both(bool both, const Bound& bound);
  [[nodiscard]] const PipelineWalk* walk();
  [[nodiscard]] std::optional<StepEnds> ends();

  const PlanSpace& space_;
  PlanPrices& prices_;
  Scenario scenario_;
  Step scratch_;  ///< whose transfers the table fills
  std::optional<TransferTable> transfers_;
  std::map<std::tuple<Synchronised, bool, bool>, Variant> variants_;  ///< and sequence parallelism
  PlanPoint point_;
  /// By schedule (one for all that lay out alike), chunks, whether the host updates, ZeRO, and how gradients are
  /// synchronised, beside the passes or not.
  std::map<std::tuple<PipelineSchedule, int, bool, int, int, SyncAlgorithm, ServerPlacement, Habits>, StepEnds> ends_;
  std::map<std::tuple<PlanPoint, Habits, bool>, Seconds> estimates_;  ///< and whether products hide collectives
  std::map<Built, Model> models_;
  std::map<Stored, MemoryFootprint> states_;  ///< weights, gradients and the optimizer's states of one of the stages
  std::vector<int> repeats_;                  ///< of each group of layers
  std::map<std::pair<Built, int>, std::vector<std::vector<LayerRun>>> chunks_;  ///< by chunks of a stage
  std::map<Costed, std::vector<LayerTimes>> costs_;
  /// By chunks of a stage, and whether backward passes have two parts and whether passes run in pairs.
  std::map<std::tuple<Costed, int, bool, bool>, PassTimes> pass_times_;
  std::map<std::tuple<Costed, int, PipelineSchedule>, std::optional<PipelineWalk>> walks_;
  /// By chunks of a stage, ZeRO, and whether a stage holds chunks of both ends.
  std::map<std::tuple<int, int, bool>, std::vector<Seconds>> to_host_;
  std::optional<BytesPerSecond> host_bandwidth_;
};

}  // namespace foretrain

// The blocks of one layout's plans: what layers take is worked out once and shared by all plans that differ in other
// things.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "model/memory/memory.hpp"
#include "model/parallelism/stages.hpp"
#include "model/planning/plan_bound.hpp"
#include "model/planning/plan_prices.hpp"
#include "model/planning/plan_space.hpp"
#include "model/training/pricing/layer_cost.hpp"
#include "model/training/transfers/transfer_table.hpp"

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
  /// As a reader sees a point: without what take() sets itself.
  [[nodiscard]] static PlanPoint as_read(PlanPoint point);
  struct ReadPlan {
    Plan plan;
    bool master_weights = false;
  };
  /// What it makes of these where the scenario leaves it open, and the time of a step depends on.
  struct Habits {
    Bytes bucket, first_bucket;
    Sync::Bucketing bucketing = Sync::Bucketing::by_layer;
    Precision gradient_precision = Precision::fp32;
    bool every_micro_batch = false;
    ExecutionMode execution = ExecutionMode::eager;
    bool single_process = false, master_weights = false;
    Sync::Gather gather = Sync::Gather::buckets;
    bool gather_overlap = false, tensor_overlap = false;
    ZeroBy zero_by = ZeroBy::scatter;
    auto operator<=>(const Habits&) const = default;
  };
  [[nodiscard]] Habits habits() const;
  /// What decides the time of a step, or of a part of it: all that does not is as in any other.
  struct Timed {
    PlanPoint point;
    Habits habits;
    auto operator<=>(const Timed&) const = default;
  };
  [[nodiscard]] Timed timed() const;
  [[nodiscard]] Timed timed_ends() const;
  /// What decides a stage's weights, gradients and optimizer states.
  struct Stored {
    int zero = 0, offload = -1, interleave = 1;
    bool both_ends = false;  ///< whether it holds chunks of both
    bool adds_up = false;    ///< gradients of several micro-batches
    auto operator<=>(const Stored&) const = default;
  };
  [[nodiscard]] Stored stored() const;
  /// What decides the model's layers.
  struct Divided {
    std::int64_t micro_batch = 1;
    bool sequence_parallel = false, sharded = false;
    ExecutionMode execution = ExecutionMode::eager;
    auto operator<=>(const Divided&) const = default;
  };
  [[nodiscard]] Divided divided() const;
  /// Whether ZeRO divides weights, too; or whichever is less, part by part.
  enum class Weights { whole, sharded, any };
  /// What decides what layers take in a pass.
  struct Costed {
    Divided layers;
    Recompute recompute = Recompute::none;
    Weights weights = Weights::whole;
    bool tensor_overlap = false, parameters_on_host = false, activations_on_host = false;
    ExpertDispatch expert_dispatch = ExpertDispatch::all_to_all;
    bool hides_exchanges = false;
    auto operator<=>(const Costed&) const = default;
  };
  [[nodiscard]] Costed costed(Weights weights) const;
  /// What decides the passes of a pipeline.
  struct Piped {
    Costed layers;
    PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
    int interleave = 1;
    auto operator<=>(const Piped&) const = default;
  };
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
  struct Passes {
    std::vector<std::vector<LayerRun>> chunks;
    PassTimes times;
    std::optional<PipelineWalk> walk = std::nullopt;  ///< once it was asked for; none where there are too many
    bool walked = false;
  };

  [[nodiscard]] TrainWorkload& train() { return std::get<TrainWorkload>(scenario_.workload); }
  [[nodiscard]] const TrainWorkload& train() const { return std::get<TrainWorkload>(scenario_.workload); }
  [[nodiscard]] Weights own_weights() const { return scenario_.plan.zero == 3 ? Weights::sharded : Weights::whole; }
  [[nodiscard]] Plan plan_with(Weights weights) const;
  [[nodiscard]] const Model& model();
  [[nodiscard]] std::optional<Step> blocks(Symmetry symmetry = Symmetry::used);
  [[nodiscard]] std::vector<PlanPrices::Group> kernels(Weights weights);
  [[nodiscard]] const std::vector<LayerTimes>& costs(Weights weights);
  void add_sharding(const LayerPricer& pricer, const Layer& layer, const LayerCalls& calls, LayerTimes& times);
  [[nodiscard]] Passes& passes(Weights weights);
  [[nodiscard]] Passes& walked_passes();
  void add_parts(Passes& passes, Weights weights);
  [[nodiscard]] std::vector<Seconds> gradients_to_host(const Passes& passes);
  [[nodiscard]] Seconds bound_by(const Passes& passes, const StepEnds* ends = nullptr);
  /// The least bound where a trainer may hide the collectives of tensor ranks or may not.
  template <typename Bound>
  [[nodiscard]] Seconds least_of_both(bool both, const Bound& bound);
  [[nodiscard]] std::optional<StepEnds> ends();

  const PlanSpace& space_;
  PlanPrices& prices_;
  Scenario scenario_;
  PlanPoint point_;
  Step scratch_;  ///< whose transfers the table fills
  std::optional<TransferTable> transfers_;
  std::map<PlanPoint, ReadPlan> plans_;  ///< as_read()
  std::map<Divided, Model> models_;
  std::map<Stored, MemoryFootprint> states_;  ///< weights, gradients and the optimizer's states of one of the stages
  std::map<Costed, std::vector<LayerTimes>> costs_;
  std::map<Piped, Passes> passes_;
  std::map<Timed, StepEnds> ends_;
  std::map<Timed, Seconds> estimates_;
};

}  // namespace foretrain

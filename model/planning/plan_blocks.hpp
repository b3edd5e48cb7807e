// The blocks of one layout's plans: what layers take is worked out once and shared by all plans that differ in other
// things.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "model/memory/memory.hpp"
#include "model/planning/plan_bound.hpp"
#include "model/planning/plan_space.hpp"
#include "model/training/layer_cost.hpp"
#include "model/training/transfer_table.hpp"

namespace foretrain {

class PlanBlocks {
 public:
  /// Throws ScenarioError where the layout is impossible.
  PlanBlocks(const PlanSpace& space, const PlanPoint& layout);

  /// The scenario takes the point's values; what a reader makes of ZeRO and synchronisation is read once for each.
  void take(const PlanPoint& point);

  /// Bounds of the plan taken: by kernels alone, over any pipeline; by all that a pass of its schedule does, with its
  /// own ZeRO or any; and by what comes after the passes as well, with its own synchronisation or any.
  [[nodiscard]] Seconds kernels_bound();
  [[nodiscard]] Seconds passes_bound(bool any_sharding);
  [[nodiscard]] Seconds ends_bound(bool any_synchronisation);
  /// What it needs at least, however gradients are synchronised.
  [[nodiscard]] MemoryFootprint least_memory();
  [[nodiscard]] MemoryFootprint memory() const { return memory_footprint(scenario_, train(), model_); }
  /// Of the plan with all its blocks; the estimate only unless `below` says that its bound is enough.
  struct Time {
    Seconds step;
    bool estimated = false;
  };
  template <typename Below>
  [[nodiscard]] Time time(const Below& below) const {
    const std::optional<Step> step = blocks();
    if (!step) return {estimate_of_job(), true};
    const Seconds bound = step_bound(*step);
    if (below(bound)) return {bound, false};
    return {estimate_of(*step), true};
  }

 private:
  using Synchronised = std::tuple<int, SyncAlgorithm, int, bool, bool>;
  struct Variant {
    Plan plan;
    bool master_weights = false;
  };

  [[nodiscard]] TrainWorkload& train() { return std::get<TrainWorkload>(scenario_.workload); }
  [[nodiscard]] const TrainWorkload& train() const { return std::get<TrainWorkload>(scenario_.workload); }
  [[nodiscard]] std::optional<Step> blocks() const;
  [[nodiscard]] Seconds estimate_of(const Step& step) const;
  [[nodiscard]] Seconds estimate_of_job() const;
  [[nodiscard]] PassTimes pass_times(bool sharded);
  [[nodiscard]] const StepEnds* ends();
  [[nodiscard]] const std::vector<LayerCost>& costs(bool sharded, bool collectives);

  const PlanSpace& space_;
  Scenario scenario_;
  Step scratch_;  ///< whose transfers the table fills
  TransferTable transfers_;
  std::map<Synchronised, Variant> variants_;
  PlanPoint point_;
  /// By schedule, chunks, ZeRO, whether the host updates, and synchronisation.
  std::map<std::tuple<PipelineSchedule, int, int, bool, SyncAlgorithm, int, bool>, StepEnds> ends_;
  Model model_;
  std::tuple<int, bool, int, bool> built_{0, false, 0, false};  ///< what `model_` was built for
  /// By micro-batch, sequence parallelism, whether products hide collectives, recomputation, ZeRO-3 and whether
  /// collectives are priced: of each group of layers.
  std::map<std::tuple<std::int64_t, bool, bool, Recompute, bool, bool>, std::vector<LayerCost>> costs_;
};

}  // namespace foretrain

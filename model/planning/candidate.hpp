// The plan that a search looks at, one after the other of a layout: its steps, built by model/training/pricing, what
// they take at least, and the memory that it needs.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <optional>

#include "model/base/error.hpp"
#include "model/memory/memory.hpp"
#include "model/planning/plan_bound.hpp"
#include "model/planning/plan_space.hpp"
#include "model/training/pricing/pass_steps.hpp"

namespace foretrain {

/// Returns the result of the work, or nothing if the plan is impossible.
template <typename Work>
auto possible(const Work& work) -> std::optional<decltype(work())> {
  try {
    return work();
  } catch (const ScenarioError&) {  // of a value that its reader refuses
  } catch (const ImpossiblePlan&) {
  }
  return std::nullopt;
}

class Candidate {
 public:
  /// Throws ScenarioError where the layout is impossible.
  Candidate(const PlanSpace& space, const PlanPoint& layout);

  /// The scenario takes the point's values; what a reader makes of ZeRO and synchronisation is read once for each.
  void take(const PlanPoint& point);

  /// Bounds of the plan taken, from steps that are built the further: kernels alone, over any pipeline. Passes that may
  /// have less to do, as nothing lies on the host; its own passes; these in their order; and with its synchronisation.
  [[nodiscard]] Seconds kernels_bound();
  [[nodiscard]] Seconds least_passes_bound();
  [[nodiscard]] PassTimes passes() { return pass_times(passes_.step(model())); }
  [[nodiscard]] Seconds bound(const PassTimes& passes, const StepEnds* ends = nullptr) const {
    return pipeline_bound(shape(), passes, ends);
  }
  /// Nothing where more than blocks say how long a step takes.
  [[nodiscard]] std::optional<StepEnds> ends();
  /// Lower bound of its memory for any synchronisation of gradients; if weights, gradients and the optimizer's states
  /// alone are too much, these.
  [[nodiscard]] MemoryFootprint least_memory();
  [[nodiscard]] bool states_fit();
  [[nodiscard]] MemoryFootprint memory() { return memory_footprint(scenario_, train(), model()); }
  /// Time of the step's graph; nothing if `hopeless` rejects a bound by all blocks of the step.
  [[nodiscard]] std::optional<Seconds> estimate(const std::function<bool(Seconds bound)>& hopeless);

 private:
  /// As a reader sees a point: without what take() sets itself.
  [[nodiscard]] static PlanPoint as_read(PlanPoint point);
  struct ReadPlan {
    Plan plan;
    bool master_weights = false;
  };
  /// Plan values that determine a stage's weights, gradients and optimizer states.
  struct Stored {
    int zero = 0, offload = -1, interleave = 1;
    bool both_ends = false;  ///< whether it holds chunks of both
    bool adds_up = false;    ///< gradients of several micro-batches
    auto operator<=>(const Stored&) const = default;
  };
  [[nodiscard]] Stored stored() const;
  /// Plan values that determine the model's layers.
  struct Divided {
    std::int64_t micro_batch = 1;
    bool sequence_parallel = false, sharded = false, recomputes_some = false;
    ExecutionMode execution = ExecutionMode::eager;
    auto operator<=>(const Divided&) const = default;
  };
  /// Key of the part of a step behind its passes: the point, and the reader's values for the keys that it leaves open.
  struct Ending {
    PlanPoint point;
    Bytes bucket, first_bucket;
    Sync::Bucketing bucketing = Sync::Bucketing::by_layer;
    Precision gradient_precision = Precision::fp32;
    bool sync_each_micro_batch = false, single_process = false, master_weights = false, gather_overlap = false;
    ExecutionMode execution = ExecutionMode::eager;
    Sync::Gather gather = Sync::Gather::buckets;
    ZeroBy zero_by = ZeroBy::scatter;
    auto operator<=>(const Ending&) const = default;
  };
  [[nodiscard]] Ending ending() const;

  [[nodiscard]] TrainWorkload& train() { return std::get<TrainWorkload>(scenario_.workload); }
  [[nodiscard]] const TrainWorkload& train() const { return std::get<TrainWorkload>(scenario_.workload); }
  [[nodiscard]] const Plan& plan() const { return scenario_.plan; }
  [[nodiscard]] int micro_batches() const { return foretrain::micro_batches(train(), scenario_.plan); }
  [[nodiscard]] PipelineShape shape() const {
    return {plan().schedule, plan().pipeline, plan().interleave, micro_batches()};
  }
  [[nodiscard]] const Model& model();
  [[nodiscard]] std::optional<Step> step(Symmetry symmetry = Symmetry::used);

  const PlanSpace& space_;
  Scenario scenario_;
  PlanPoint point_;
  PassSteps passes_;
  std::map<PlanPoint, ReadPlan> plans_;  ///< as_read()
  std::map<Divided, Model> models_;
  std::map<Stored, MemoryFootprint> states_;  ///< weights, gradients and the optimizer's states of one of the stages
  std::map<Ending, StepEnds> ends_;
};

}  // namespace foretrain

#include "model/planning/candidate.hpp"

#include <algorithm>
#include <utility>

#include "model/job/job.hpp"
#include "model/parallelism/layout.hpp"
#include "model/parameter_server/store.hpp"
#include "model/training/graph/step_graph.hpp"
#include "model/training/outcome/breakdown.hpp"
#include "model/training/pricing/build_step.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

/// The scenario has another plan for as long as this lives.
class OtherPlan {
 public:
  OtherPlan(Scenario& scenario, Plan plan) : scenario_(scenario), own_(std::exchange(scenario.plan, std::move(plan))) {}
  ~OtherPlan() { scenario_.plan = std::move(own_); }
  OtherPlan(const OtherPlan&) = delete;
  OtherPlan& operator=(const OtherPlan&) = delete;

 private:
  Scenario& scenario_;
  Plan own_;
};

}  // namespace

Candidate::Candidate(const PlanSpace& space, const PlanPoint& layout)
    : space_(space), scenario_(space.read(layout)), passes_(scenario_, space.topology()) {
  plans_.emplace(as_read(layout), ReadPlan{scenario_.plan, train().master_weights});
  scenario_.cluster.failures.reset();  // no step depends on them, and trainings through failures take long
}

PlanPoint Candidate::as_read(PlanPoint point) {
  point.micro_batch = 1;
  point.recompute = Recompute::none;
  if (!splits_backward(point.schedule)) point.schedule = PipelineSchedule::one_forward_one_backward;
  point.interleave = point.interleave > 1 ? 2 : 1;
  point.offload = -1;
  return point;
}

void Candidate::take(const PlanPoint& point) {
  const PlanPoint key = as_read(point);
  auto known = plans_.find(key);
  if (known == plans_.end()) {
    const Scenario read = space_.read(point);
    const bool master_weights = std::get<TrainWorkload>(read.workload).master_weights;
    known = plans_.emplace(key, ReadPlan{read.plan, master_weights}).first;
  }
  point_ = point;
  scenario_.plan = known->second.plan;
  train().master_weights = known->second.master_weights;
  train().micro_batch = point.micro_batch;
  train().recompute = point.recompute;
  scenario_.plan.schedule = point.schedule;
  scenario_.plan.interleave = point.interleave;
  if (point.offload >= 0) scenario_.plan.offload = offload_of(point.offload);
}

/// The part of a step behind its passes depends on parameters, not on activations or on the order of passes; overlap is
/// distinguished by the caller. ZeRO-1 and 2 differ in memory alone, in what a reader makes of them, and in when
/// gradients leave.
Candidate::Ending Candidate::ending() const {
  const Sync& sync = plan().sync;
  Ending key{.point = point_,
             .bucket = sync.bucket,
             .first_bucket = sync.first_bucket,
             .bucketing = sync.bucketing,
             .gradient_precision = sync.gradient_precision,
             .sync_each_micro_batch = synchronises_every_micro_batch(plan()),
             .single_process = plan().single_process,
             .master_weights = train().master_weights,
             .gather_overlap = sync.gather_overlap,
             .execution = plan().execution,
             .gather = sync.gather,
             .zero_by = plan().zero_by};
  PlanPoint& point = key.point;
  if (point.zero == 2) point.zero = 1;
  if (point.schedule == PipelineSchedule::gpipe ||
      (point.schedule == PipelineSchedule::zero_bubble && point.interleave == 1)) {
    point.schedule = PipelineSchedule::one_forward_one_backward;
  }
  point.micro_batch = 1;
  point.recompute = Recompute::none;
  point.sequence_parallel = false;
  point.offload = -1;  // the update is no part of it
  point.bucket = -1;   // as said above
  point.overlap = true;
  return key;
}

Candidate::Stored Candidate::stored() const {
  return {.zero = plan().zero,
          .offload = point_.offload,
          .interleave = plan().interleave,
          .both_ends = plan().schedule == PipelineSchedule::dualpipe,
          .adds_up = micro_batches() > 1};
}

const Model& Candidate::model() {
  const Divided key{.micro_batch = train().micro_batch,
                    .sequence_parallel = plan().sequence_parallel,
                    .sharded = plan().zero == 3,
                    .recomputes_some = train().recompute == Recompute::full && train().recompute_layers.of > 0,
                    .execution = plan().execution};
  auto known = models_.find(key);
  if (known == models_.end()) {
    known = models_.emplace(key, build_model(train().model, build_options(train(), plan()))).first;
  }
  return known->second;
}

/// Whether ZeRO divides weights or not.
Seconds Candidate::kernels_bound() {
  Seconds least = Seconds::infinity();
  for (const int zero : {0, 3}) {
    Plan lean = plan();
    lean.zero = zero;
    lean.tensor_overlap = false;                         // chunks make kernels longer
    lean.sync.accumulation = Sync::Accumulation::fused;  // no kernels
    const OtherPlan other(scenario_, std::move(lean));
    least = std::min(least, passes_.kernels(model()));
  }
  return least * (static_cast<double>(micro_batches()) / plan().pipeline);
}

Seconds Candidate::least_passes_bound() {
  Plan lean = plan();
  lean.offload = {};
  const OtherPlan other(scenario_, std::move(lean));
  PassTimes passes = pass_times(passes_.step(model()));
  passes.updates.clear();
  return bound(passes);
}

std::optional<StepEnds> Candidate::ends() {
  const Ending key = ending();
  auto known = ends_.find(key);
  if (known == ends_.end()) {
    Plan beside = plan();
    beside.sync.overlap = true;
    const OtherPlan other(scenario_, std::move(beside));
    const std::optional<Step> built = step(Symmetry::of_stages);
    if (!built) return std::nullopt;
    known = ends_.emplace(key, ends_of(*built)).first;
  }
  StepEnds ends = known->second;
  ends.overlap = plan().sync.overlap;
  ends.sync_each_micro_batch = synchronises_every_micro_batch(plan());
  return ends;
}

MemoryFootprint Candidate::least_memory() {
  const auto known = states_.find(stored());
  if (known != states_.end() && !known->second.fits_gpu()) return known->second;
  Plan lean = plan();
  lean.sync.separate_bucket_buffers = false;
  lean.sync.bucket = Bytes(0.0);
  const OtherPlan other(scenario_, std::move(lean));
  const MemoryFootprint least = memory();
  if (known == states_.end()) {
    MemoryFootprint& states = states_.emplace(stored(), least).first->second;
    states.activations = states.workspace = Bytes(0.0);
  }
  return least;
}

bool Candidate::states_fit() {
  auto known = states_.find(stored());
  if (known == states_.end()) {
    static_cast<void>(least_memory());
    known = states_.find(stored());
  }
  return known->second.fits_gpu();
}

/// Nothing where more than the step's graph says how long it takes.
std::optional<Step> Candidate::step(Symmetry symmetry) {
  if (train().loader || scenario_.cluster.jitter || uses_store(scenario_)) return std::nullopt;
  return build_step(scenario_, train(), model(), space_.topology(), Recipes::none, InsideLayers::merged, symmetry);
}

std::optional<Seconds> Candidate::estimate(const std::function<bool(Seconds bound)>& hopeless) {
  const std::optional<Step> built = step();
  if (!built) return foretrain::estimate(scenario_).time();
  if (hopeless(step_bound(*built))) return std::nullopt;
  if (space_.topology().draws_routes()) return foretrain::estimate(scenario_).time();
  return step_time(*built, run(step_graph(*built).graph).makespan);
}

}  // namespace foretrain

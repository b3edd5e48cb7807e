#include "model/planning/plan_blocks.hpp"

#include <algorithm>
#include <utility>

#include "model/base/number.hpp"
#include "model/job/job.hpp"
#include "model/parallelism/layout.hpp"
#include "model/parallelism/stages.hpp"
#include "model/training/breakdown.hpp"
#include "model/training/step_graph.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

/// Whether every stage's groups lie on nodes and links as those of the first stage do.
bool stages_lie_alike(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const Cluster& cluster = scenario.cluster;
  if (!cluster.faults.empty() || !scenario.background.empty()) return false;
  if (plan.pipeline == 1) return true;
  const int node = cluster.gpus_per_node;
  const auto divides = [](int a, int b) { return a % b == 0 || b % a == 0; };
  if (plan.order == Plan{}.order) return divides(cluster.gpus() / plan.pipeline, node);
  return plan.order.back() == ParallelDimension::data && plan.expert == 1 && node % (plan.tensor * plan.context) == 0;
}

/// What a bound may count of a layer's collectives: those between kernels, where all ranks have them alike.
void keep_certain(LayerCalls& calls, const std::vector<Step::Transfer>& transfers) {
  for (LayerCalls::Calls* pass : {&calls.forward, &calls.recompute, &calls.backward}) {
    pass->beside.clear();
    pass->behind.clear();
    std::erase_if(pass->between, [&](int transfer) { return transfers[at_index(transfer)].parts.size() > 1; });
  }
}

}  // namespace

PlanBlocks::PlanBlocks(const PlanSpace& space, const PlanPoint& layout)
    : space_(space), scenario_(space.read(layout)), transfers_(scenario_, space.topology(), scratch_.transfers) {
  scenario_.cluster.failures.reset();  // no step depends on them, and trainings through failures take long
}

void PlanBlocks::take(const PlanPoint& point) {
  const Synchronised key{point.zero, point.algorithm, point.bucket, point.overlap, point.sequence_parallel};
  auto known = variants_.find(key);
  if (known == variants_.end()) {
    const Scenario read = space_.read(point);
    known = variants_.emplace(key, Variant{read.plan, std::get<TrainWorkload>(read.workload).master_weights}).first;
  }
  point_ = point;
  scenario_.plan = known->second.plan;
  train().master_weights = known->second.master_weights;
  train().micro_batch = point.micro_batch;
  train().recompute = point.recompute;
  scenario_.plan.schedule = point.schedule;
  scenario_.plan.interleave = point.interleave;
  if (point.offload >= 0) scenario_.plan.offload = offload_of(point.offload);
  const std::tuple built{point.micro_batch, point.sequence_parallel, point.zero, train().master_weights};
  if (std::exchange(built_, built) != built)
    model_ = build_model(train().model, build_options(train(), scenario_.plan));
}

const std::vector<LayerCost>& PlanBlocks::costs(bool sharded, bool collectives) {
  const auto [known, is_new] =
      costs_.try_emplace({train().micro_batch, scenario_.plan.sequence_parallel, scenario_.plan.tensor_overlap,
                          train().recompute, sharded, collectives});
  if (!is_new) return known->second;
  const int zero = std::exchange(scenario_.plan.zero, sharded ? 3 : scenario_.plan.zero);
  // Weights that are sharded are cast before they are gathered, not in every pass.
  const Model model = build_model(train().model, build_options(train(), scenario_.plan));
  const LayerPricer pricer(scenario_, train(), space_.topology());
  const bool counted = collectives && stages_lie_alike(scenario_);
  for (const LayerGroup& group : model.layers) {
    LayerCost cost = pricer.price(group.layer);
    if (counted) {
      LayerCalls calls = pricer.calls(group.layer, 0, transfers_);
      keep_certain(calls, scratch_.transfers);
      cost = pricer.on_lane(cost, calls, 1.0, 0, transfers_);
    }
    known->second.push_back(cost);
  }
  scenario_.plan.zero = zero;
  return known->second;
}

Seconds PlanBlocks::kernels_bound() {
  const bool chunked = std::exchange(scenario_.plan.tensor_overlap, false);  // which makes kernels longer
  const std::vector<LayerCost>& layers = costs(true, false);
  scenario_.plan.tensor_overlap = chunked;
  Seconds all;
  for (std::size_t group = 0; group < layers.size(); ++group) {
    const LayerCost& layer = layers[group];
    all += (layer.forward_kernels + layer.backward_kernels + layer.recompute_kernels) *
           static_cast<double>(model_.layers[group].repeat);
  }
  return all * (static_cast<double>(micro_batches(train(), scenario_.plan)) / scenario_.plan.pipeline);
}

PassTimes PlanBlocks::pass_times(bool sharded) {
  const Plan& plan = scenario_.plan;
  const std::vector<LayerCost>& layers = costs(sharded, true);
  // The two passes of a pair hide each other's collectives and dispatch.
  const bool paired = plan.schedule == PipelineSchedule::dualpipe;
  PassTimes times;
  for (const std::vector<LayerRun>& chunk : split_layers(model_, plan.pipeline, plan.interleave)) {
    LayerCost cost;
    for (const LayerRun& run : chunk) cost += layers[at_index(run.group)] * run.count;
    times.forward.push_back(paired ? cost.forward_kernels : cost.forward().total());
    times.backward.push_back(paired ? cost.backward_kernels + cost.recompute_kernels : cost.backward().total());
  }
  return times;
}

Seconds PlanBlocks::passes_bound(bool any_sharding) {
  const auto bound = [&] {
    return pipeline_bound(scenario_.plan, micro_batches(train(), scenario_.plan),
                          pass_times(any_sharding || scenario_.plan.zero == 3));
  };
  if (!any_sharding || !scenario_.plan.sequence_parallel) return bound();
  // A trainer may hide the collectives of tensor ranks with one ZeRO and not with another.
  const bool chunked = std::exchange(scenario_.plan.tensor_overlap, true);
  const Seconds hidden = bound();
  scenario_.plan.tensor_overlap = false;
  const Seconds least = std::min(hidden, bound());
  scenario_.plan.tensor_overlap = chunked;
  return least;
}

/// Null where more than blocks say how long a step takes.
const StepEnds* PlanBlocks::ends() {
  const auto key = std::tuple(point_.schedule, point_.interleave, point_.zero, scenario_.plan.offload.optimizer,
                              point_.algorithm, point_.bucket, point_.overlap);
  auto known = ends_.find(key);
  if (known == ends_.end()) {
    const std::optional<Step> step = blocks();
    if (!step) return nullptr;
    known = ends_.emplace(key, ends_of(*step, scenario_.plan)).first;
  }
  return &known->second;
}

Seconds PlanBlocks::ends_bound(bool any_synchronisation) {
  const StepEnds* own = ends();
  StepEnds any;
  if (own != nullptr && any_synchronisation) {
    any = *own;
    any.overlap = true;
    for (StepEnds::Stage& stage : any.stages) stage.gradients = Seconds(0.0);
    own = &any;
  }
  return pipeline_bound(scenario_.plan, micro_batches(train(), scenario_.plan), pass_times(scenario_.plan.zero == 3),
                        own);
}

MemoryFootprint PlanBlocks::least_memory() {
  const Sync sync = scenario_.plan.sync;
  scenario_.plan.sync.bucket_rule = Sync::BucketRule::megatron;  // parts of the gradients' own memory
  scenario_.plan.sync.bucket = Bytes(0.0);
  const MemoryFootprint least = memory();
  scenario_.plan.sync = sync;
  return least;
}

/// Nothing where more than the step's graph says how long it takes.
std::optional<Step> PlanBlocks::blocks() const {
  if (train().loader || scenario_.cluster.jitter) return std::nullopt;
  return build_step(scenario_, train(), model_, space_.topology());
}

Seconds PlanBlocks::estimate_of(const Step& step) const {
  StepGraph::Times times;
  times.end = run(step_graph(step).graph).makespan;
  return step_time(step, times, std::nullopt);
}

Seconds PlanBlocks::estimate_of_job() const { return estimate(scenario_).time(); }

}  // namespace foretrain

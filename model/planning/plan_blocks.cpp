#include "model/planning/plan_blocks.hpp"
#include "model/training/pricing/build_step.hpp"

#include <algorithm>
#include <utility>

#include "model/base/number.hpp"
#include "model/job/job.hpp"
#include "model/parallelism/layout.hpp"
#include "model/parallelism/stages.hpp"
#include "model/parallelism/weight_gradients.hpp"
#include "model/parameter_server/store.hpp"
#include "model/planning/other_plan.hpp"
#include "model/training/graph/step_graph.hpp"
#include "model/training/outcome/breakdown.hpp"
#include "model/training/pricing/gradient_sync.hpp"
#include "model/training/pricing/offload.hpp"
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
  if (plan.order == Plan{}.order) return divides(static_cast<int>(worker_gpus(plan, cluster)) / plan.pipeline, node);
  const int replica = plan.tensor * plan.context;
  return plan.order.back() == ParallelDimension::data && divides(replica, node) &&
         (plan.expert == 1 || divides(replica * plan.pipeline, node));
}

/// What a bound may count of a layer's collectives: those that all ranks have alike. False where these are not all.
bool keep_certain(LayerCalls& calls, const std::vector<Step::Transfer>& transfers) {
  std::size_t erased = 0;
  const auto uncertain = [&](int transfer) { return transfers[at_index(transfer)].parts.size() > 1; };
  for (LayerCalls::Calls* pass : {&calls.forward, &calls.recompute, &calls.backward}) {
    erased += std::erase_if(pass->beside, uncertain);
    erased += std::erase_if(pass->between, uncertain);
    erased += std::erase_if(pass->behind, [&](const LayerCalls::Behind& call) { return uncertain(call.transfer); });
  }
  return erased == 0;
}

/// All collectives of a pass.
void add_moving(Beside& beside, const LayerCalls::Calls& calls) {
  for (const int transfer : calls.beside) beside.add(transfer);
  for (const int transfer : calls.between) beside.add(transfer);
  for (const LayerCalls::Behind& call : calls.behind) beside.add(call.transfer);
}

/// What neither of the two exceeds, part by part.
LayerCost least_of(LayerCost a, const LayerCost& b) {
  for (const auto pass : {&LayerCost::forward, &LayerCost::recompute, &LayerCost::backward}) {
    PassCost& own = a.*pass;
    own.kernels = std::min(own.kernels, (b.*pass).kernels);
    own.dispatch = std::min(own.dispatch, (b.*pass).dispatch);
  }
  return a;
}

}  // namespace

PlanBlocks::PlanBlocks(const PlanSpace& space, const PlanPoint& layout, PlanPrices& prices)
    : space_(space), prices_(prices), scenario_(space.read(layout)) {
  plans_.emplace(as_read(layout), ReadPlan{scenario_.plan, train().master_weights});
  scenario_.cluster.failures.reset();  // no step depends on them, and trainings through failures take long
}

PlanPoint PlanBlocks::as_read(PlanPoint point) {
  point.micro_batch = 1;
  point.recompute = Recompute::none;
  point.schedule = PipelineSchedule::one_forward_one_backward;
  point.interleave = point.interleave > 1 ? 2 : 1;
  point.offload = -1;
  return point;
}

void PlanBlocks::take(const PlanPoint& point) {
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

PlanBlocks::Habits PlanBlocks::habits() const {
  const Plan& plan = scenario_.plan;
  const Sync& sync = plan.sync;
  return {.bucket = sync.bucket,
          .first_bucket = sync.first_bucket,
          .bucketing = sync.bucketing,
          .gradient_precision = sync.gradient_precision,
          .every_micro_batch = synchronises_every_micro_batch(plan),
          .execution = plan.execution,
          .single_process = plan.single_process,
          .master_weights = train().master_weights,
          .gather = sync.gather,
          .gather_overlap = sync.gather_overlap,
          .tensor_overlap = plan.tensor_overlap,
          .zero_by = plan.zero_by};
}

/// ZeRO-1 and 2 differ in memory alone, in what a reader makes of them, and in when gradients leave (Habits).
PlanBlocks::Timed PlanBlocks::timed() const {
  Timed key{point_, habits()};
  if (point_.zero == 2) key.point.zero = 1;
  return key;
}

/// What follows a step's passes depends on parameters, not on activations or on the order of passes; overlap is told
/// apart by whoever asks.
PlanBlocks::Timed PlanBlocks::timed_ends() const {
  Timed key = timed();
  PlanPoint& point = key.point;
  if (point.schedule == PipelineSchedule::gpipe ||
      (point.schedule == PipelineSchedule::zero_bubble && point.interleave == 1)) {
    point.schedule = PipelineSchedule::one_forward_one_backward;
  }
  point.micro_batch = 1;
  point.recompute = Recompute::none;
  point.sequence_parallel = key.habits.tensor_overlap = false;
  point.offload = scenario_.plan.offload.optimizer ? 1 : 0;
  point.bucket = -1;  // as habits say
  point.overlap = true;
  return key;
}

PlanBlocks::Stored PlanBlocks::stored() const {
  const Plan& plan = scenario_.plan;
  return {.zero = plan.zero,
          .offload = point_.offload,
          .interleave = plan.interleave,
          .both_ends = plan.schedule == PipelineSchedule::dualpipe,
          .adds_up = micro_batches(train(), plan) > 1};
}

PlanBlocks::Divided PlanBlocks::divided() const {
  const Plan& plan = scenario_.plan;
  return {.micro_batch = train().micro_batch,
          .sequence_parallel = plan.sequence_parallel,
          .sharded = plan.zero == 3,
          .execution = plan.execution};
}

PlanBlocks::Costed PlanBlocks::costed(Weights weights) const {
  const Plan& plan = scenario_.plan;
  const bool on_host = weights != Weights::any;
  return {.layers = divided(),
          .recompute = train().recompute,
          .weights = weights,
          .tensor_overlap = plan.tensor_overlap,
          .parameters_on_host = on_host && plan.offload.parameters,
          .activations_on_host = on_host && plan.offload.activations,
          .expert_dispatch = plan.expert_dispatch,
          .hides_exchanges = hides_exchanges(plan)};
}

const Model& PlanBlocks::model() {
  const Divided key = divided();
  auto known = models_.find(key);
  if (known == models_.end()) {
    known = models_.emplace(key, build_model(train().model, build_options(train(), scenario_.plan))).first;
  }
  return known->second;
}

/// The plan with such weights.
Plan PlanBlocks::plan_with(Weights weights) const {
  Plan plan = scenario_.plan;
  plan.zero = weights == Weights::sharded ? 3 : std::min(plan.zero, 2);
  return plan;
}

/// Kernels and dispatch of each group of layers.
std::vector<PlanPrices::Group> PlanBlocks::kernels(Weights weights) {
  const auto priced = [&](Weights kind) {
    const OtherPlan other(scenario_, plan_with(kind));
    return prices_.of(scenario_, [&]() -> const Model& { return model(); });
  };
  std::vector<PlanPrices::Group> groups = priced(weights);
  if (weights != Weights::any) return groups;
  const std::vector<PlanPrices::Group> sharded = priced(Weights::sharded);
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].cost = least_of(groups[i].cost, sharded[i].cost);
  return groups;
}

/// The same with copies to the host, collectives inside layers and under ZeRO-3 those of their weights.
const std::vector<PlanBlocks::LayerTimes>& PlanBlocks::costs(Weights weights) {
  const Costed key = costed(weights);
  auto known = costs_.find(key);
  if (known == costs_.end()) {
    std::vector<LayerTimes> costs;
    const bool counted = stages_lie_alike(scenario_);
    if (counted && !transfers_) transfers_.emplace(scenario_, space_.topology(), scratch_.transfers);
    const LayerPricer pricer(scenario_, train());
    for (const auto& [cost, repeat] : kernels(weights)) {
      const Layer& layer = model().layers[costs.size()].layer;
      LayerTimes& times = costs.emplace_back(LayerTimes{cost, cost, {}, {}, {}});
      LayerCalls calls;
      if (counted) {
        calls = pricer.calls(layer, 0, *transfers_);
        times.exact = keep_certain(calls, scratch_.transfers);
        times.in_pass = pricer.on_lane(cost, calls, 1.0, 0, *transfers_);
        Beside forward(*transfers_, 0), backward(*transfers_, 0);
        add_moving(forward, calls.forward);
        add_moving(backward, calls.recompute);
        add_moving(backward, calls.backward);
        times.forward = {forward.time(), forward.cost(forward.time())};
        times.backward = {backward.time(), backward.cost(backward.time())};
      }
      if (weights != Weights::any) add_offload(times.in_pass, layer, scenario_, train(), space_.topology());
      if (counted && weights == Weights::sharded && layer.splittable) add_sharding(pricer, layer, calls, times);
    }
    known = costs_.emplace(key, std::move(costs)).first;
  }
  return known->second;
}

/// What its weights' and gradients' way costs a layer.
void PlanBlocks::add_sharding(const LayerPricer& pricer, const Layer& layer, const LayerCalls& calls,
                              LayerTimes& times) {
  Step::Chunk chunk;
  GradientSync(scenario_, pricer, *transfers_).add_sharded_units({}, {{&layer, times.in_pass, &calls}}, chunk);
  const ShardedUnit& unit = chunk.units.front();
  for (const int transfer : {unit.gather, unit.gather_backward, unit.scatter}) {
    if (transfer < 0) continue;
    if (scratch_.transfers[at_index(transfer)].parts.size() > 1) return;
    times.weights += transfers_->time(transfer, 0);
  }
  const auto lengthen = [](Seconds& kernels, const Stretch& pass, const PassCost& own) {
    kernels += pass.time.compute - own.segment().compute;
  };
  lengthen(times.in_pass.forward.kernels, unit.forward, times.in_pass.forward);
  lengthen(times.in_pass.backward.kernels, unit.backward, times.in_pass.whole_backward());
}

Seconds PlanBlocks::kernels_bound() {
  Plan whole = scenario_.plan;
  whole.tensor_overlap = false;  // chunks make kernels longer
  const OtherPlan other(scenario_, std::move(whole));
  Seconds all;
  for (const auto& [layer, repeat] : kernels(Weights::any)) {
    all += (layer.forward.kernels + layer.backward.kernels + layer.recompute.kernels) * static_cast<double>(repeat);
  }
  return all * (static_cast<double>(micro_batches(train(), scenario_.plan)) / scenario_.plan.pipeline);
}

PlanBlocks::Passes& PlanBlocks::passes(Weights weights) {
  const Plan& plan = scenario_.plan;
  const Piped key{costed(weights), plan.schedule, plan.interleave};
  if (const auto known = passes_.find(key); known != passes_.end()) return known->second;
  const std::vector<LayerTimes>& layers = costs(weights);
  Passes made{split_layers(model(), plan), {}};
  PassTimes& times = made.times;
  std::vector<PassWork> forward, backward;
  times.exact = std::ranges::all_of(layers, &LayerTimes::exact);
  for (const std::vector<LayerRun>& chunk : made.chunks) {
    LayerCost alone, cost;
    LayerTimes::Moving there, back;
    Seconds of_weights;
    for (const LayerRun& run : chunk) {
      const LayerTimes& layer = layers[at_index(run.group)];
      alone += layer.alone * run.count;
      cost += layer.in_pass * run.count;
      there.add(layer.forward, run.count);
      back.add(layer.backward, run.count);
      of_weights += layer.weights * static_cast<double>(run.count);
    }
    times.weights.push_back(of_weights);
    PerPass<Seconds>& of_chunk = times.passes.emplace_back();
    of_chunk[PassKind::forward] = cost.forward.segment().total();
    of_chunk[PassKind::backward] = cost.whole_backward().segment().total();
    const PassCost alone_backward = alone.whole_backward();
    forward.push_back({alone.forward.kernels, alone.forward.dispatch, there.time, {}, there.slowdown()});
    backward.push_back({alone_backward.kernels, alone_backward.dispatch, back.time, {}, back.slowdown()});
  }
  for (std::size_t at = 0; plan.schedule == PipelineSchedule::dualpipe && at < forward.size(); ++at) {
    const std::size_t other = forward.size() - 1 - at;  // of the same stage
    times.passes[at][PassKind::paired] =
        std::min(paired(forward[at], backward[other]).time.total(),
                 times.passes[at][PassKind::forward] + times.passes[other][PassKind::backward]);
  }
  if (splits_backward(plan.schedule) && weights != Weights::any) add_parts(made, weights);
  return passes_.emplace(key, std::move(made)).first->second;
}

/// Backward passes in two parts, as their layers are.
void PlanBlocks::add_parts(Passes& passes, Weights weights) {
  const OtherPlan other(scenario_, plan_with(weights));
  const LayerPricer pricer(scenario_, train());
  std::vector<PerPass<LayerCost>> costs;  // by group of layers: of the pass's backward half
  for (const LayerGroup& group : model().layers) {
    const Layer layer = without_weight_gradients(group.layer);
    LayerCost cost = pricer.price(layer);
    if (stages_lie_alike(scenario_)) {
      LayerCalls calls = pricer.calls(layer, 0, *transfers_);
      keep_certain(calls, scratch_.transfers);
      cost = pricer.on_lane(cost, calls, 1.0, 0, *transfers_);
    }
    add_offload(cost, group.layer, scenario_, train(), space_.topology());
    PerPass<LayerCost>& own = costs.emplace_back();
    own[PassKind::inputs] = cost;
    own[PassKind::weights] = pricer.price(weight_gradients_alone(group.layer));
  }
  for (std::size_t at = 0; at < passes.chunks.size(); ++at) {
    for (const PassKind kind : {PassKind::inputs, PassKind::weights}) {
      LayerCost sum;
      for (const LayerRun& run : passes.chunks[at]) sum += costs[at_index(run.group)][kind] * run.count;
      passes.times.passes[at][kind] = sum.whole_backward().segment().total();
    }
  }
}

MemoryFootprint PlanBlocks::least_memory() {
  const auto known = states_.find(stored());
  if (known != states_.end() && !known->second.fits_gpu()) return known->second;
  Plan plan = scenario_.plan;
  plan.sync.copied = false;
  plan.sync.bucket = Bytes(0.0);
  const OtherPlan other(scenario_, std::move(plan));
  const MemoryFootprint least = memory();
  if (known == states_.end()) {
    MemoryFootprint& states = states_.emplace(stored(), least).first->second;
    states.activations = states.workspace = Bytes(0.0);
  }
  return least;
}

bool PlanBlocks::states_fit() {
  auto known = states_.find(stored());
  if (known == states_.end()) {
    static_cast<void>(least_memory());
    known = states_.find(stored());
  }
  return known->second.fits_gpu();
}

/// Nothing where more than the step's graph says how long it takes.
std::optional<Step> PlanBlocks::blocks(Symmetry symmetry) {
  if (train().loader || scenario_.cluster.jitter || uses_store(scenario_)) return std::nullopt;
  return build_step(scenario_, train(), model(), space_.topology(), Recipes::none, symmetry);
}

std::optional<Seconds> PlanBlocks::estimate(const std::function<bool(Seconds bound)>& hopeless) {
  const Timed key = timed();
  if (const auto known = estimates_.find(key); known != estimates_.end()) return known->second;
  const std::optional<Step> step = blocks();
  if (!step) return foretrain::estimate(scenario_).time();
  if (hopeless(step_bound(*step))) return std::nullopt;
  if (space_.topology().draws_routes()) return estimates_[key] = foretrain::estimate(scenario_).time();
  StepGraph::Times times;
  times.end = run(step_graph(*step).graph).makespan;
  return estimates_[key] = step_time(*step, times, std::nullopt);
}

}  // namespace foretrain

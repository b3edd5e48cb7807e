#include "model/planning/plan_blocks.hpp"

#include <algorithm>
#include <utility>

#include "model/base/number.hpp"
#include "model/job/job.hpp"
#include "model/parallelism/layout.hpp"
#include "model/parallelism/stages.hpp"
#include "model/parallelism/weight_gradients.hpp"
#include "model/parameter_server/store.hpp"
#include "model/training/breakdown.hpp"
#include "model/training/gradient_sync.hpp"
#include "model/training/offload.hpp"
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
  variants_.emplace(std::tuple(synchronised(layout), layout.sequence_parallel, layout.interleave > 1),
                    Variant{scenario_.plan, train().master_weights});
  scenario_.cluster.failures.reset();  // no step depends on them, and trainings through failures take long
}

void PlanBlocks::take(const PlanPoint& point) {
  const std::tuple key{synchronised(point), point.sequence_parallel, point.interleave > 1};
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
}

const Model& PlanBlocks::model() {
  auto known = models_.find(built());
  if (known == models_.end()) {
    known = models_.emplace(built(), build_model(train().model, build_options(train(), scenario_.plan))).first;
  }
  return known->second;
}

const std::vector<std::vector<LayerRun>>& PlanBlocks::chunks() {
  const Plan& plan = scenario_.plan;
  auto known = chunks_.find({built(), plan.interleave});
  if (known == chunks_.end()) {
    auto split = split_layers(model(), plan);
    known = chunks_.emplace(std::pair(built(), plan.interleave), std::move(split)).first;
  }
  return known->second;
}

/// Kernels and dispatch of each group of layers.
std::vector<LayerCost> PlanBlocks::kernels(Weights weights) {
  const int zero = scenario_.plan.zero;
  const auto of = [&](Weights kind) {
    scenario_.plan.zero = kind == Weights::sharded ? 3 : std::min(zero, 2);
    return prices_.of(scenario_, train(), [&]() -> const Model& { return model(); });
  };
  std::vector<LayerCost> costs = of(weights);
  if (weights == Weights::any) {
    const std::vector<LayerCost> sharded = of(Weights::sharded);
    for (std::size_t group = 0; group < costs.size(); ++group) costs[group] = least_of(costs[group], sharded[group]);
  }
  scenario_.plan.zero = zero;
  return costs;
}

/// The same with copies to the host, collectives inside layers and under ZeRO-3 those of their weights.
const std::vector<PlanBlocks::LayerTimes>& PlanBlocks::costs(Weights weights) {
  auto known = costs_.find(costed(weights));
  if (known == costs_.end()) {
    std::vector<LayerTimes> costs;
    const bool counted = stages_lie_alike(scenario_);
    if (counted && !transfers_) transfers_.emplace(scenario_, space_.topology(), scratch_.transfers);
    const LayerPricer pricer(scenario_, train());
    for (const LayerCost& cost : kernels(weights)) {
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
    known = costs_.emplace(costed(weights), std::move(costs)).first;
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
  if (repeats_.empty()) {
    for (const LayerGroup& group : model().layers) repeats_.push_back(group.repeat);
  }
  const bool chunked = std::exchange(scenario_.plan.tensor_overlap, false);  // which makes kernels longer
  const std::vector<LayerCost> layers = kernels(Weights::any);
  scenario_.plan.tensor_overlap = chunked;
  Seconds all;
  for (std::size_t group = 0; group < layers.size(); ++group) {
    const LayerCost& layer = layers[group];
    all += (layer.forward.kernels + layer.backward.kernels + layer.recompute.kernels) *
           static_cast<double>(repeats_[group]);
  }
  return all * (static_cast<double>(micro_batches(train(), scenario_.plan)) / scenario_.plan.pipeline);
}

const PassTimes& PlanBlocks::pass_times(Weights weights) {
  const Plan& plan = scenario_.plan;
  const bool in_pairs = plan.schedule == PipelineSchedule::dualpipe;
  const bool parted = splits_backward(plan.schedule) && weights != Weights::any;
  const std::tuple key{costed(weights), plan.interleave, parted, in_pairs};
  if (const auto known = pass_times_.find(key); known != pass_times_.end()) return known->second;
  const std::vector<LayerTimes>& layers = costs(weights);
  PassTimes times;
  std::vector<PassWork> forward, backward;
  times.exact = std::ranges::all_of(layers, &LayerTimes::exact);
  for (const std::vector<LayerRun>& chunk : chunks()) {
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
    PerPass<Seconds>& passes = times.passes.emplace_back();
    passes[PassKind::forward] = cost.forward.segment().total();
    passes[PassKind::backward] = cost.whole_backward().segment().total();
    const PassCost alone_backward = alone.whole_backward();
    forward.push_back({alone.forward.kernels, alone.forward.dispatch, there.time, {}, there.slowdown()});
    backward.push_back({alone_backward.kernels, alone_backward.dispatch, back.time, {}, back.slowdown()});
  }
  for (std::size_t at = 0; in_pairs && at < forward.size(); ++at) {
    const std::size_t other = forward.size() - 1 - at;  // of the same stage
    times.passes[at][PassKind::paired] =
        std::min(paired(forward[at], backward[other]).time.total(),
                 times.passes[at][PassKind::forward] + times.passes[other][PassKind::backward]);
  }
  if (parted) add_parts(times, weights);
  return pass_times_.emplace(key, std::move(times)).first->second;
}

/// Backward passes in two parts, as their layers are.
void PlanBlocks::add_parts(PassTimes& times, Weights weights) {
  const LayerPricer pricer(scenario_, train());
  const int zero =
      std::exchange(scenario_.plan.zero, weights == Weights::sharded ? 3 : std::min(scenario_.plan.zero, 2));
  std::vector<LayerCost> inputs, weight_gradients;
  for (const LayerGroup& group : model().layers) {
    const Layer layer = without_weight_gradients(group.layer);
    LayerCost cost = pricer.price(layer);
    if (stages_lie_alike(scenario_)) {
      LayerCalls calls = pricer.calls(layer, 0, *transfers_);
      keep_certain(calls, scratch_.transfers);
      cost = pricer.on_lane(cost, calls, 1.0, 0, *transfers_);
    }
    add_offload(cost, group.layer, scenario_, train(), space_.topology());
    inputs.push_back(cost);
    weight_gradients.push_back(pricer.price(weight_gradients_alone(group.layer)));
  }
  scenario_.plan.zero = zero;
  std::size_t at = 0;
  for (const std::vector<LayerRun>& chunk : chunks()) {
    LayerCost of_inputs, of_weights;
    for (const LayerRun& run : chunk) {
      of_inputs += inputs[at_index(run.group)] * run.count;
      of_weights += weight_gradients[at_index(run.group)] * run.count;
    }
    PerPass<Seconds>& passes = times.passes[at++];
    passes[PassKind::inputs] = of_inputs.whole_backward().segment().total();
    passes[PassKind::weights] = of_weights.whole_backward().segment().total();
  }
}

MemoryFootprint PlanBlocks::least_memory() {
  const auto known = states_.find(stored());
  if (known != states_.end() && !known->second.fits_gpu()) return known->second;
  const Sync sync = scenario_.plan.sync;
  scenario_.plan.sync.copied = false;
  scenario_.plan.sync.bucket = Bytes(0.0);
  const MemoryFootprint least = memory();
  scenario_.plan.sync = sync;
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
  std::tuple key{point_, habits(), scenario_.plan.tensor_overlap};
  std::get<PlanPoint>(key).zero = zero_in_time(point_.zero);
  if (const auto known = estimates_.find(key); known != estimates_.end()) return known->second;
  const std::optional<Step> step = blocks();
  if (!step) return foretrain::estimate(scenario_).time();
  if (hopeless(step_bound(*step, scenario_.plan))) return std::nullopt;
  if (space_.topology().draws_routes()) return estimates_[key] = foretrain::estimate(scenario_).time();
  StepGraph::Times times;
  times.end = run(step_graph(*step).graph).makespan;
  return estimates_[key] = step_time(*step, times, std::nullopt);
}

}  // namespace foretrain

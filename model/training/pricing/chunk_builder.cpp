#include "model/training/pricing/chunk_builder.hpp"

#include <algorithm>
#include <utility>

#include "model/base/number.hpp"
#include "model/cost/launches.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/memory/stage_memory.hpp"
#include "model/parallelism/weight_gradients.hpp"
#include "model/training/pricing/offload.hpp"
#include "model/workload/update_passes.hpp"

namespace foretrain {

namespace {

double largest_tensor(const Layer& layer) {
  double largest = 0.0;
  for (const WeightMatrix& matrix : layer.matrices) largest = std::max(largest, matrix.elements());
  return largest;
}

PassCost pass_of(const std::vector<PricedLayer>& layers, const LayerCost& cost, bool backward) {
  PassCost pass{(backward ? cost.whole_backward() : cost.forward).time_breakdown()};
  pass.parts.reserve(layers.size());
  for (const PricedLayer& layer : layers) pass.parts.push_back(layer.part(backward, layer.count));
  if (backward) std::ranges::reverse(pass.parts);
  return pass;
}

/// Bytes that one parameter's update reads and writes (fused: states and gradients in their own formats), and the
/// passes over gradients before it (unscaling or norm, then clipping). States and master weights are fp32; a 2-byte
/// copy of the weights is written at the end. Gradients that were copied into buckets are first copied out of them and
/// divided.
Operator optimizer_operator(const TrainWorkload& train, const Plan& plan, double parameters, int layers, int tensors) {
  const bool fused = train.code.fused_optimizer;
  const double gradient = fused ? bytes_per_element(plan.sync.gradient_precision).value() : 4.0;
  const double weight = bytes_per_element(storage_precision(train.precision)).value();
  const double states = optimizer_state(train).value();
  const UpdatePasses passes = update_passes(train.optimizer);
  const bool clips = train.code.clip_gradients;
  const double unscaled = !fused && train.precision == Precision::fp16 ? gradient : 0.0;
  const double averaged = plan.sync.separate_bucket_buffers && plan.data > 1 && plan.zero < 3 ? 2.0 * gradient : 0.0;
  const double clipping = clips ? 2.0 * gradient : 0.0;
  const double copy = weight < 4.0 && !train.code.cache_cast_weights ? weight : 0.0;
  const double before = unscaled + averaged;
  const double fused_read = gradient + 4.0 + states + 4.0 * passes.norms_read;
  const double read = (fused ? fused_read : 4.0 * passes.separate_read) + clipping + before;
  const double updated = fused ? 4.0 + states + 4.0 * passes.norms_written : 4.0 * passes.separate_written;
  const double written = updated + copy + (clips ? gradient : 0.0) + before;
  const int kernels =
      fused ? layers : tensors * (1 + (clips ? 2 : 0) + (unscaled > 0.0 ? 1 : 0) + (averaged > 0.0 ? 2 : 0));
  return {"optimizer",
          Streaming{StreamingKind::optimizer, Bytes(read * parameters), Bytes(written * parameters),
                    Flops(10.0 * parameters), false},
          Precision::fp32, kernels};
}

/// Five Newton–Schulz steps of each matrix of a block in bf16, its shorter side first: A = X·Xᵀ, B = b·A + c·A·A,
/// X = a·X + B·X (PyTorch, optim/_muon.py).
LayerPassCost orthogonalisation(const Layer& layer, const LayerPricer& pricer) {
  constexpr double steps = 5.0;
  LayerPassCost all;
  for (const WeightMatrix& matrix : layer.matrices) {
    const auto [m, n] = std::minmax(matrix.rows, matrix.columns);
    std::vector<Operator> step;
    for (Matmul work : {Matmul{1, m, m, n}, Matmul{1, m, m, m}, Matmul{1, m, n, m}}) {
      work.accumulate = !step.empty();
      step.push_back({"orthogonalisation", work, Precision::bf16, 1});
    }
    all += LayerPassCost{{}, pricer.kernels(step), pricer.dispatch(step)} * (steps * number(matrix.count));
  }
  return all;
}

}  // namespace

ChunkBuilder::ChunkBuilder(const Scenario& scenario, const TrainWorkload& train, const Model& model,
                           const Topology& topology, Recipes recipes, TransferTable& transfers,
                           std::span<const LayerCost> prices)
    : scenario_(scenario),
      plan_(scenario.plan),
      train_(train),
      model_(model),
      topology_(topology),
      transfers_(transfers),
      pricer_(scenario, train, recipes),
      sync_(scenario, pricer_, transfers),
      placement_(plan_) {
  for (std::size_t group = 0; group < model.layers.size(); ++group) {
    const Layer& layer = model.layers[group].layer;
    prices_.emplace_back()[PassKind::backward] =
        prices.empty() ? pricer_.price(layer) : pricer_.with_recomputation(prices[group], layer);
  }
  arrange();
}

void ChunkBuilder::arrange() {
  placement_ = ChunkPlacement(plan_);
  runs_ = split_layers(model_, plan_);
  if (!splits_backward(plan_.schedule) || !parts_.empty()) return;
  for (std::size_t group = 0; group < prices_.size(); ++group) {
    const Layer& layer = model_.layers[group].layer;
    PerPass<Layer>& parts = parts_.emplace_back();
    parts[PassKind::inputs] = without_weight_gradients(layer);
    parts[PassKind::weights] = weight_gradients_alone(layer);
    for (const PassKind kind : {PassKind::inputs, PassKind::weights}) prices_[group][kind] = pricer_.price(parts[kind]);
  }
}

const std::vector<LayerRun>& ChunkBuilder::runs_of(int stage, int chunk) const {
  return runs_[at_index(placement_.position(stage, chunk))];
}

Bytes ChunkBuilder::output(int stage, int chunk) const {
  return model_.layers[at_index(runs_of(stage, chunk).back().group)].layer.output;
}

std::vector<Step::Chunk> ChunkBuilder::chunks(const GradientSync::Place& place, int stage,
                                              std::optional<int> micro_batches, StageLayers& sums) {
  std::vector<PipelinePass> last(at_index(placement_.chunks()), {PassKind::backward});
  if (micro_batches && splits_backward(plan_.schedule)) {
    const auto order = pipeline_order(plan_.schedule, plan_.pipeline, stage, plan_.interleave, *micro_batches);
    last = last_gradients(order, placement_.chunks());
  }
  std::vector<Step::Chunk> chunks;
  chunks.reserve(last.size());
  for (int number = 0; number < placement_.chunks(); ++number) {
    const Layers layers = layers_of(place, stage, number, PassKind::backward);
    Step::Chunk& chunk = chunks.emplace_back(passes_of(place, stage, number, layers, sums));
    if (plan_.zero == 3) sync_.add_sharded_units(place, layers, chunk);
    if (!micro_batches) continue;
    note_inside(layers, chunk);
    if (pricer_.keeps_recipes()) keep_recipes(layers, chunk);
    if (plan_.zero == 3) continue;
    const PassKind kind = last[at_index(number)].kind;
    const bool whole = kind == PassKind::backward;
    sync_.add_buckets(place, whole ? layers : layers_of(place, stage, number, kind), chunk);
    if (plan_.zero > 0) sync_.add_gathers(place, layers, chunk);
  }
  pair(place, stage, chunks);
  return chunks;
}

const std::shared_ptr<const LayerCalls>& ChunkBuilder::calls_of(int stage, int group, PassKind kind) {
  std::shared_ptr<const LayerCalls>& known = calls_[{stage, group, kind}];
  if (known == nullptr) {
    const bool whole = kind == PassKind::backward;
    const Layer& layer = whole ? model_.layers[at_index(group)].layer : parts_[at_index(group)][kind];
    known = std::make_shared<const LayerCalls>(pricer_.calls(layer, prices_[at_index(group)][kind], stage, transfers_));
  }
  return known;
}

ChunkBuilder::Layers ChunkBuilder::layers_of(const GradientSync::Place& place, int stage, int chunk, PassKind kind) {
  Layers layers;
  for (const LayerRun& run : runs_of(stage, chunk)) {
    const auto group = at_index(run.group);
    const Layer& layer = model_.layers[group].layer;
    const std::shared_ptr<const LayerCalls>& calls = calls_of(place.stage, run.group, kind);
    LayerCost cost = pricer_.on_class(prices_[group][kind], *calls, place.speed, place.rank_class, transfers_);
    if (kind != PassKind::weights) add_offload(cost, layer, scenario_, train_, topology_);
    // Outside the repeated blocks each is by itself: ZeRO-3 gathers them together.
    const int together = layer.splittable ? run.count : 1;
    layers.insert(layers.end(), at_index(run.count / together), PricedLayer{&layer, cost, calls, together});
  }
  return layers;
}

LayerCost ChunkBuilder::cost_of(const Layers& layers) const {
  LayerCost cost;
  for (const PricedLayer& priced : layers) cost += priced.cost * priced.count;
  // One graph holds a micro-batch's forward and backward pass.
  if (plan_.execution == ExecutionMode::cuda_graph) {
    cost.forward.dispatch += host_dispatch_time(1, plan_.execution, scenario_.calibration.host);
  }
  return cost;
}

Step::Chunk ChunkBuilder::passes_of(const GradientSync::Place& place, int stage, int number, const Layers& layers,
                                    StageLayers& sums) {
  Step::Chunk chunk;
  for (const auto& [layer, of_one, calls, count] : layers) {
    sums.parameters += layer->parameters * count;
    sums.in_experts += layer->expert_parameters * count;
    sums.largest_tensor = std::max(sums.largest_tensor, largest_tensor(*layer));
    if (train_.optimizer == Optimizer::muon && layer->splittable) {
      sums.orthogonalisation += orthogonalisation(*layer, pricer_) * count;
    }
    if (layer->parameters > 0.0) {
      sums.layers += count;
      sums.tensors += count * tensors_of(*layer);
    }
  }
  const LayerCost cost = cost_of(layers);
  chunk.passes[PassKind::forward] = pass_of(layers, cost, false);
  chunk.passes[PassKind::backward] = pass_of(layers, cost, true);
  chunk.hidden_exchanges = std::max(cost.forward.gain - chunk.time(PassKind::forward).host, Seconds(0.0)) +
                           std::max(cost.whole_backward().gain - chunk.time(PassKind::backward).host, Seconds(0.0));
  for (const PassKind kind : {PassKind::inputs, PassKind::weights}) {
    if (!splits_backward(plan_.schedule)) break;
    const Layers parts = layers_of(place, stage, number, kind);
    chunk.passes[kind] = pass_of(parts, cost_of(parts), true);
  }
  return chunk;
}

void ChunkBuilder::pair(const GradientSync::Place& place, int stage, std::vector<Step::Chunk>& chunks) const {
  if (plan_.schedule != PipelineSchedule::dualpipe) return;
  for (const int number : {0, 1}) {
    chunks[at_index(number)].passes[PassKind::paired] =
        paired(work_of(place, stage, number, false), work_of(place, stage, 1 - number, true));
  }
}

PassCost paired(const PassWork& forward, const PassWork& backward) {
  const auto slowed = [](Seconds kernels, const PassWork& other) {
    return kernels + std::min(kernels, other.collectives) * other.slowdown;
  };
  const Seconds forward_kernels = slowed(forward.kernels, backward);
  const Seconds backward_kernels = slowed(backward.kernels, forward);
  const Seconds exposed = std::max(forward.collectives - backward_kernels, Seconds(0.0)) +
                          std::max(backward.collectives - forward_kernels, Seconds(0.0));
  LayerPassCost both{{}, forward_kernels + backward_kernels, forward.dispatch + backward.dispatch};
  both.exposed = exposed;
  both.hidden = forward.collectives + backward.collectives - exposed;
  const auto beside = [](const PassWork& other, Seconds kernels) {
    LayerCalls calls;
    calls.forward.beside = other.transfers;
    calls.forward.hiding = 1.0;
    return PassCost::Part{{}, kernels, std::make_shared<const LayerCalls>(std::move(calls))};
  };
  return {both.time_breakdown(), {beside(forward, backward_kernels), beside(backward, forward_kernels)}};
}

PassWork ChunkBuilder::work_of(const GradientSync::Place& place, int stage, int number, bool backward) const {
  PassWork pass;
  OverlapCost beside(transfers_, place.rank_class);
  const auto add_calls = [&](const PassCalls& calls) {
    const auto add = [&](int transfer) {
      pass.transfers.push_back(transfer);
      beside.add(transfer);
    };
    std::ranges::for_each(calls.beside, add);
    std::ranges::for_each(calls.between, add);
    std::ranges::for_each(calls.exchanges, add);
    for (const PassCalls::Behind& call : calls.behind) add(call.transfer);
  };
  for (const LayerRun& run : runs_of(stage, number)) {
    const LayerCost cost = prices_[at_index(run.group)][PassKind::backward] * run.count;
    const LayerPassCost own = backward ? cost.whole_backward() : cost.forward;
    pass.kernels += own.kernels / place.speed;
    pass.dispatch += own.dispatch;
    const LayerCalls& calls = *calls_.at({place.stage, run.group, PassKind::backward});
    for (int i = 0; i < run.count; ++i) {
      if (backward) add_calls(calls.recompute);
      add_calls(backward ? calls.backward : calls.forward);
    }
  }
  pass.collectives = beside.time();
  if (pass.collectives > Seconds(0.0)) pass.slowdown = beside.cost(pass.collectives) / pass.collectives;
  return pass;
}

void ChunkBuilder::note_inside(const Layers& layers, Step::Chunk& chunk) {
  for (const PricedLayer& priced : layers) {
    for (const PassCalls* calls : {&priced.calls->forward, &priced.calls->recompute, &priced.calls->backward}) {
      for (const auto& [name, transfer, count] : calls->all) {
        const auto same = [&](const InsideCall& call) { return call.name == name && call.transfer == transfer; };
        auto known = std::ranges::find_if(chunk.inside, same);
        if (known == chunk.inside.end()) known = chunk.inside.insert(known, {name, transfer, 0});
        known->count += count * priced.count;
      }
    }
  }
}

void ChunkBuilder::keep_recipes(const Layers& layers, Step::Chunk& chunk) const {
  std::vector<Operator> forward, backward;
  for (const PricedLayer& priced : layers) {
    for (int i = 0; i < priced.count; ++i) {
      forward.insert(forward.end(), priced.layer->forward.begin(), priced.layer->forward.end());
    }
  }
  for (auto priced = layers.rbegin(); priced != layers.rend(); ++priced) {
    const std::vector<Operator> ops = pricer_.backward_operators(*priced->layer);
    for (int i = 0; i < priced->count; ++i) backward.insert(backward.end(), ops.begin(), ops.end());
  }
  chunk.passes[PassKind::forward].recipe = pricer_.recipe(forward);
  chunk.passes[PassKind::backward].recipe = pricer_.recipe(backward);
}

void ChunkBuilder::set_optimizer(double speed, const StageLayers& stage, Step::RankClass& rank_class) const {
  double parameters =
      plan_.zero >= 1 ? parameters_of_shard(plan_, stage.parameters, stage.in_experts) : stage.parameters;
  const bool owned = (plan_.zero == 1 || plan_.zero == 2) && plan_.sync.has_owners();
  if (owned) parameters = std::max(parameters, stage.largest_tensor);  // its owner updates all of it
  if (plan_.offload.optimizer) {
    Seconds backward;
    for (const Step::Chunk& chunk : rank_class.chunks) backward += chunk.time(PassKind::backward).total();
    rank_class.optimizer = offloaded_optimizer(parameters, backward, scenario_, train_, topology_);
    return;
  }
  const Operator update = optimizer_operator(train_, plan_, parameters, stage.layers, stage.tensors);
  const Gpu& gpu = scenario_.cluster.node.gpu;
  // Whole matrices are a rank's of those that share states (Megatron-Core, optimizer/layer_wise_optimizer.py).
  const LayerPassCost matrices = stage.orthogonalisation * (parameters / std::max(stage.parameters, 1.0));
  const Seconds kernels = (operator_cost(update, gpu, scenario_.calibration).device + matrices.kernels) / speed;
  const Seconds dispatch =
      host_dispatch_time(update.kernels, plan_.execution, scenario_.calibration.host) + matrices.dispatch;
  rank_class.optimizer.compute = kernels;
  rank_class.optimizer.host = std::max(dispatch - kernels, Seconds(0.0));
  if (plan_.offload.parameters) {
    rank_class.optimizer.exposed_copies = weights_to_host(parameters, scenario_, train_, topology_);
  }
  if (pricer_.keeps_recipes()) {
    rank_class.optimizer_recipe =
        std::make_shared<const Recipe>(kernels_of({update}, ExecutionMode::eager, 1.0, gpu, scenario_.calibration));
  }
}

}  // namespace foretrain

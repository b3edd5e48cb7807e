#include "model/training/pricing/chunk_builder.hpp"

#include <algorithm>

#include "model/base/number.hpp"
#include "model/cost/launches.hpp"
#include "model/parallelism/weight_gradients.hpp"
#include "model/training/pricing/offload.hpp"

namespace foretrain {

namespace {

/// Trainable tensors of a layer: its matrices, and a vector beside each (biases, scales of norms).
int tensors_of(const Layer& layer) {
  std::int64_t matrices = 0;
  for (const WeightMatrix& matrix : layer.matrices) matrices += matrix.count;
  return static_cast<int>(std::max<std::int64_t>(2 * matrices, 1));
}

double largest_tensor(const Layer& layer) {
  double largest = 0.0;
  for (const WeightMatrix& matrix : layer.matrices) largest = std::max(largest, matrix.elements());
  return largest;
}

/// Calls visit(layer, how many of it follow each other).
template <typename Visit>
void visit_runs(const std::vector<PricedLayer>& layers, const Visit& visit) {
  for (auto first = layers.begin(); first != layers.end();) {
    const auto next = std::find_if(first, layers.end(), [&](const auto& other) { return other.layer != first->layer; });
    visit(*first, static_cast<int>(next - first));
    first = next;
  }
}

Stretch forward_pass(const std::vector<PricedLayer>& layers, const LayerCost& cost, bool cut) {
  Stretch pass{cost.forward.segment()};
  for (auto priced = layers.begin(); cut && priced != layers.end(); ++priced) append_forward(pass.pieces, *priced);
  fit_pieces(pass);
  return pass;
}

Stretch backward_pass(const std::vector<PricedLayer>& layers, const LayerCost& cost, bool cut) {
  Stretch pass{cost.whole_backward().segment()};
  for (auto priced = layers.rbegin(); cut && priced != layers.rend(); ++priced) append_backward(pass.pieces, *priced);
  fit_pieces(pass);
  return pass;
}

}  // namespace

ChunkBuilder::ChunkBuilder(const Scenario& scenario, const TrainWorkload& train, const Model& model,
                           const Topology& topology, Recipes recipes, TransferTable& transfers)
    : scenario_(scenario),
      plan_(scenario.plan),
      train_(train),
      model_(model),
      topology_(topology),
      transfers_(transfers),
      pricer_(scenario, train, recipes),
      sync_(scenario, pricer_, transfers),
      placement_(plan_),
      runs_(split_layers(model, plan_)) {
  for (const LayerGroup& group : model.layers) {
    PerPass<LayerCost>& price = prices_.emplace_back();
    price[PassKind::backward] = pricer_.price(group.layer);
    if (!splits_backward(plan_.schedule)) continue;
    PerPass<Layer>& parts = parts_.emplace_back();
    parts[PassKind::inputs] = without_weight_gradients(group.layer);
    parts[PassKind::weights] = weight_gradients_alone(group.layer);
    for (const PassKind kind : {PassKind::inputs, PassKind::weights}) price[kind] = pricer_.price(parts[kind]);
  }
}

const std::vector<LayerRun>& ChunkBuilder::runs_of(int stage, int chunk) const {
  return runs_[at_index(placement_.position(stage, chunk))];
}

Bytes ChunkBuilder::output(int stage, int chunk) const {
  return model_.layers[at_index(runs_of(stage, chunk).back().group)].layer.output;
}

std::vector<Step::Chunk> ChunkBuilder::chunks(const GradientSync::Place& place, int micro_batches, StageLayers& stage) {
  std::vector<PassKind> last(at_index(placement_.chunks()), PassKind::backward);
  if (splits_backward(plan_.schedule)) {
    const auto order = pipeline_order(plan_.schedule, plan_.pipeline, place.stage, plan_.interleave, micro_batches);
    std::ranges::transform(last_gradients(order, placement_.chunks()), last.begin(), &PipelinePass::kind);
  }
  std::vector<Step::Chunk> chunks;
  chunks.reserve(last.size());
  for (int number = 0; number < placement_.chunks(); ++number) {
    chunks.push_back(chunk(place, number, last[at_index(number)], stage));
  }
  if (plan_.schedule != PipelineSchedule::dualpipe) return chunks;
  for (const int number : {0, 1}) {
    Stretch& pair = chunks[at_index(number)].passes[PassKind::paired];
    pair = paired(work_of(place, number, false), work_of(place, 1 - number, true));
    if (!place.cut) pair.pieces.clear();
  }
  return chunks;
}

const LayerCalls& ChunkBuilder::calls_of(int stage, int group, PassKind kind) {
  const auto [known, is_new] = calls_.try_emplace({stage, group, kind});
  if (is_new) {
    const bool whole = kind == PassKind::backward;
    const Layer& layer = whole ? model_.layers[at_index(group)].layer : parts_[at_index(group)][kind];
    known->second = pricer_.calls(layer, stage, transfers_);
  }
  return known->second;
}

ChunkBuilder::Layers ChunkBuilder::layers_of(const GradientSync::Place& place, int chunk, PassKind kind) {
  Layers layers;
  for (const LayerRun& run : runs_of(place.stage, chunk)) {
    const auto group = at_index(run.group);
    const Layer& layer = model_.layers[group].layer;
    const LayerCalls& calls = calls_of(place.stage, run.group, kind);
    LayerCost cost = pricer_.on_lane(prices_[group][kind], calls, place.speed, place.lane, transfers_);
    if (kind != PassKind::weights) add_offload(cost, layer, scenario_, train_, topology_);
    layers.insert(layers.end(), at_index(run.count), PricedLayer{&layer, cost, &calls});
  }
  return layers;
}

LayerCost ChunkBuilder::cost_of(const Layers& layers) const {
  LayerCost cost;
  visit_runs(layers, [&](const PricedLayer& priced, int count) { cost += priced.cost * count; });
  // One graph holds a micro-batch's forward and backward pass.
  if (plan_.execution == ExecutionMode::cuda_graph) {
    cost.forward.dispatch += host_dispatch_time(1, plan_.execution, scenario_.calibration.host);
  }
  return cost;
}

/// `last`: what the step's last pass makes of the chunk's gradients.
Step::Chunk ChunkBuilder::chunk(const GradientSync::Place& place, int number, PassKind last, StageLayers& stage) {
  Step::Chunk chunk;
  const Layers layers = layers_of(place, number, PassKind::backward);
  visit_runs(layers, [&](const PricedLayer& priced, int count) {
    stage.parameters += priced.layer->parameters * count;
    stage.in_experts += priced.layer->expert_parameters * count;
    stage.largest_tensor = std::max(stage.largest_tensor, largest_tensor(*priced.layer));
    if (priced.layer->parameters > 0.0) {
      stage.layers += count;
      stage.tensors += count * tensors_of(*priced.layer);
    }
  });
  const LayerCost cost = cost_of(layers);
  chunk.passes[PassKind::forward] = forward_pass(layers, cost, place.cut);
  chunk.passes[PassKind::backward] = backward_pass(layers, cost, place.cut);
  chunk.hidden_exchanges = std::max(cost.forward.gain - chunk.time(PassKind::forward).host, Seconds(0.0)) +
                           std::max(cost.whole_backward().gain - chunk.time(PassKind::backward).host, Seconds(0.0));
  if (pricer_.keeps_recipes()) keep_recipes(layers, chunk);
  for (const PassKind kind : {PassKind::inputs, PassKind::weights}) {
    if (!splits_backward(plan_.schedule)) break;
    const Layers parts = layers_of(place, number, kind);
    chunk.passes[kind] = backward_pass(parts, cost_of(parts), place.cut);
  }
  if (plan_.zero == 3) {
    sync_.add_sharded_units(place, layers, chunk);
  } else {
    sync_.add_buckets(place, last == PassKind::backward ? layers : layers_of(place, number, last), chunk);
    if (plan_.zero > 0) sync_.add_gathers(place, layers, chunk);
  }
  return chunk;
}

PassWork ChunkBuilder::work_of(const GradientSync::Place& place, int number, bool backward) const {
  PassWork pass;
  Beside beside(transfers_, place.lane);
  const auto add_calls = [&](const LayerCalls::Calls& calls) {
    const auto add = [&](int transfer) {
      pass.transfers.push_back(transfer);
      beside.add(transfer);
    };
    std::ranges::for_each(calls.beside, add);
    std::ranges::for_each(calls.between, add);
    for (const LayerCalls::Behind& call : calls.behind) add(call.transfer);
  };
  for (const LayerRun& run : runs_of(place.stage, number)) {
    const LayerCost cost = prices_[at_index(run.group)][PassKind::backward] * run.count;
    const PassCost own = backward ? cost.whole_backward() : cost.forward;
    pass.kernels += own.kernels / place.speed;
    pass.dispatch += own.dispatch;
    const LayerCalls& calls = calls_.at({place.stage, run.group, PassKind::backward});
    for (int i = 0; i < run.count; ++i) {
      if (backward) add_calls(calls.recompute);
      add_calls(backward ? calls.backward : calls.forward);
    }
  }
  pass.collectives = beside.time();
  if (pass.collectives > Seconds(0.0)) pass.slowdown = beside.cost(pass.collectives) / pass.collectives;
  return pass;
}

void ChunkBuilder::keep_recipes(const Layers& layers, Step::Chunk& chunk) const {
  std::vector<Operator> forward, backward;
  for (const PricedLayer& priced : layers) {
    forward.insert(forward.end(), priced.layer->forward.begin(), priced.layer->forward.end());
  }
  for (auto priced = layers.rbegin(); priced != layers.rend(); ++priced) {
    const std::vector<Operator> ops = pricer_.backward_operators(*priced->layer);
    backward.insert(backward.end(), ops.begin(), ops.end());
  }
  chunk.passes[PassKind::forward].recipe = pricer_.recipe(forward);
  chunk.passes[PassKind::backward].recipe = pricer_.recipe(backward);
}

}  // namespace foretrain

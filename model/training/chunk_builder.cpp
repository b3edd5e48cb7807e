#include "model/training/chunk_builder.hpp"

#include <algorithm>

#include "model/base/number.hpp"
#include "model/cost/launches.hpp"
#include "model/parallelism/weight_gradients.hpp"
#include "model/training/offload.hpp"

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

std::vector<Piece> forward_pieces(const std::vector<PricedLayer>& layers) {
  std::vector<Piece> pieces;
  for (const PricedLayer& priced : layers) append_forward(pieces, priced);
  return pieces;
}

std::vector<Piece> backward_pieces(const std::vector<PricedLayer>& layers) {
  std::vector<Piece> pieces;
  for (auto priced = layers.rbegin(); priced != layers.rend(); ++priced) append_backward(pieces, *priced);
  return pieces;
}

std::vector<Piece> fitted(std::vector<Piece> pieces, const Segment& pass) {
  fit_pieces(pieces, pass);
  return pieces;
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
    Price& price = prices_.emplace_back();
    price.whole = pricer_.price(group.layer);
    if (!splits_backward(plan_.schedule)) continue;
    inputs_layers_.push_back(without_weight_gradients(group.layer));
    price.inputs = pricer_.price(inputs_layers_.back());
    price.weights = pricer_.price(weight_gradients_alone(group.layer));
  }
}

const std::vector<LayerRun>& ChunkBuilder::runs_of(int stage, int chunk) const {
  return runs_[at_index(placement_.position(stage, chunk))];
}

Bytes ChunkBuilder::output(int stage, int chunk) const {
  return model_.layers[at_index(runs_of(stage, chunk).back().group)].layer.output;
}

std::vector<Step::Chunk> ChunkBuilder::chunks(const GradientSync::Place& place, int micro_batches, StageLayers& stage) {
  std::vector<PipelinePass> last(at_index(placement_.chunks()));
  if (splits_backward(plan_.schedule)) {
    last = last_gradients(pipeline_order(plan_.schedule, plan_.pipeline, place.stage, plan_.interleave, micro_batches),
                          placement_.chunks());
  }
  std::vector<Step::Chunk> chunks;
  chunks.reserve(last.size());
  for (int number = 0; number < placement_.chunks(); ++number) {
    chunks.push_back(chunk(place, number, last[at_index(number)].part, stage));
  }
  if (plan_.schedule == PipelineSchedule::dualpipe) {
    for (const int number : {0, 1}) add_pair(place, number, chunks[at_index(number)]);
  }
  return chunks;
}

const LayerCalls& ChunkBuilder::calls_of(int stage, int group, Part part) {
  static const LayerCalls none;
  if (part == Part::weights) return none;
  const bool whole = part == Part::whole;
  const auto [known, is_new] = (whole ? calls_ : inputs_calls_).try_emplace({stage, group});
  if (is_new) {
    const Layer& layer = whole ? model_.layers[at_index(group)].layer : inputs_layers_[at_index(group)];
    known->second = pricer_.calls(layer, stage, transfers_);
  }
  return known->second;
}

/// The layers of a chunk one by one, as they are priced on the lane, with the backward pass or a part of it.
ChunkBuilder::Layers ChunkBuilder::layers_of(const GradientSync::Place& place, int chunk, Part part) {
  Layers layers;
  for (const LayerRun& run : runs_of(place.stage, chunk)) {
    const auto group = at_index(run.group);
    const Layer& layer = model_.layers[group].layer;
    const Price& price = prices_[group];
    const LayerCalls& calls = calls_of(place.stage, run.group, part);
    LayerCost cost = part == Part::whole ? price.whole : part == Part::inputs ? price.inputs : price.weights;
    cost = pricer_.on_lane(cost, calls, place.speed, place.lane, transfers_);
    if (part != Part::weights) add_offload(cost, layer, scenario_, train_, topology_);
    layers.insert(layers.end(), at_index(run.count), PricedLayer{&layer, cost, &calls});
  }
  return layers;
}

LayerCost ChunkBuilder::cost_of(const Layers& layers) const {
  LayerCost cost;
  visit_runs(layers, [&](const PricedLayer& priced, int count) { cost += priced.cost * count; });
  // One graph holds a micro-batch's forward and backward pass.
  if (plan_.execution == ExecutionMode::cuda_graph) {
    cost.forward_dispatch += host_dispatch_time(1, plan_.execution, scenario_.calibration.host);
  }
  return cost;
}

/// `last`: what the step's last pass makes of the chunk's gradients.
Step::Chunk ChunkBuilder::chunk(const GradientSync::Place& place, int number, Part last, StageLayers& stage) {
  Step::Chunk chunk;
  const Layers layers = layers_of(place, number);
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
  chunk.forward = cost.forward();
  chunk.backward = cost.backward();
  chunk.hidden_exchanges = std::max(cost.forward_gain - chunk.forward.host, Seconds(0.0)) +
                           std::max(cost.backward_gain - chunk.backward.host, Seconds(0.0));
  if (place.cut) {
    chunk.forward_pieces = fitted(forward_pieces(layers), chunk.forward);
    chunk.backward_pieces = fitted(backward_pieces(layers), chunk.backward);
  }
  if (pricer_.keeps_recipes()) keep_recipes(layers, chunk);
  if (splits_backward(plan_.schedule)) add_parts(place, number, chunk);
  if (plan_.zero == 3) {
    sync_.add_sharded_units(place, layers, chunk);
  } else {
    sync_.add_buckets(place, last == Part::whole ? layers : layers_of(place, number, last), chunk);
    if (plan_.zero > 0) sync_.add_gathers(place, layers, chunk);
  }
  return chunk;
}

/// The backward pass in two parts.
void ChunkBuilder::add_parts(const GradientSync::Place& place, int number, Step::Chunk& chunk) {
  const Layers inputs = layers_of(place, number, Part::inputs), weights = layers_of(place, number, Part::weights);
  chunk.inputs = cost_of(inputs).backward();
  chunk.weights = cost_of(weights).backward();
  if (!place.cut) return;
  chunk.inputs_pieces = fitted(backward_pieces(inputs), chunk.inputs);
  chunk.weights_pieces = fitted(backward_pieces(weights), chunk.weights);
}

/// The forward pass of one chunk with the backward pass of the other.
void ChunkBuilder::add_pair(const GradientSync::Place& place, int number, Step::Chunk& chunk) {
  PassPair pair = paired(work_of(place, number, false), work_of(place, 1 - number, true));
  chunk.paired = pair.time;
  if (place.cut) chunk.paired_pieces = std::move(pair.pieces);
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
    const LayerCost cost = prices_[at_index(run.group)].whole * run.count;
    pass.kernels += (backward ? cost.backward_kernels + cost.recompute_kernels : cost.forward_kernels) / place.speed;
    pass.dispatch += backward ? cost.backward_dispatch + cost.recompute_dispatch : cost.forward_dispatch;
    const LayerCalls& calls = calls_.at({place.stage, run.group});
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
  chunk.forward_recipe = pricer_.recipe(forward);
  chunk.backward_recipe = pricer_.recipe(backward);
}

}  // namespace foretrain

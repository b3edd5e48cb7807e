#include "model/training/step.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "model/base/error.hpp"
#include "model/base/number.hpp"
#include "model/collectives/automatic.hpp"
#include "model/collectives/contention.hpp"
#include "model/cost/launches.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/memory/stage_memory.hpp"
#include "model/training/gradient_sync.hpp"
#include "model/training/layer_cost.hpp"
#include "model/training/offload.hpp"
#include "model/training/train_loader.hpp"
#include "model/training/transfer_table.hpp"

namespace foretrain {

namespace {

/// Trainable tensors of a layer: its matrices, and a vector beside each (biases, scales of norms).
int tensors_of(const Layer& layer) {
  std::int64_t matrices = 0;
  for (const WeightMatrix& matrix : layer.matrices) matrices += matrix.count;
  return static_cast<int>(std::max<std::int64_t>(2 * matrices, 1));
}

/// Bytes that one parameter's update reads and writes, and the passes over gradients before it (unscaling or norm, then
/// clipping). States and master weights are fp32; a 2-byte copy of the weights is written at the end. Fused optimizers
/// take a layer's tensors at once; plain ones launch unscaling, norm, clipping and update for each tensor, on fp32
/// gradients, which between replicas they first copy out of their bucket and divide.
Operator optimizer_operator(const TrainWorkload& train, const Plan& plan, double parameters, int layers, int tensors) {
  const bool plain = train.kernels == KernelSet::plain;
  const double gradient = plain ? 4.0 : bytes_per_element(plan.sync.gradient_precision).value();
  const double weight = bytes_per_element(storage_precision(train.precision)).value();
  const double states = optimizer_state(train.optimizer).value();
  const bool adaptive = states == 8.0;
  const double unscaled = plain && train.precision == Precision::fp16 ? gradient : 0.0;
  const double averaged = plain && plan.data > 1 && plan.zero < 3 ? 2.0 * gradient : 0.0;
  const double clipping = adaptive ? 2.0 * gradient : 0.0;
  const double copy = weight < 4.0 && !plain ? weight : 0.0;
  const double read = gradient + 4.0 + states + clipping + unscaled + averaged;
  const double written = 4.0 + states + copy + (adaptive ? gradient : 0.0) + unscaled + averaged;
  const int kernels =
      plain ? tensors * (1 + (adaptive ? 2 : 0) + (unscaled > 0.0 ? 1 : 0) + (averaged > 0.0 ? 2 : 0)) : layers;
  return {"optimizer",
          Streaming{StreamingKind::optimizer, Bytes(read * parameters), Bytes(written * parameters),
                    Flops(10.0 * parameters), false},
          Precision::fp32, kernels};
}

/// Replicas with more or longer samples finish later, and the others wait for them: once a step, or under ZeRO-3 at
/// every layer, so that each micro-batch takes as long as its slowest.
Seconds waiting_for_slowest(const Step& step, const Plan& plan, const Model& model) {
  const int together = plan.zero == 3 || step.every_micro_batch ? 1 : step.micro_batches;
  const double excess = slowest_replica(model.variation, together, plan.data) - 1.0;
  Seconds longest;
  for (const Step::Lane& lane : step.lanes) {
    Seconds passes;
    for (const Step::Chunk& chunk : lane.chunks) passes += chunk.forward.total() + chunk.backward.total();
    longest = std::max(longest, passes);
  }
  return longest * (excess * step.micro_batches);
}

/// What a stage's chunks add up to.
struct StageLayers {
  double parameters = 0.0, in_experts = 0.0;
  int layers = 0, tensors = 0;  ///< that hold parameters, and are trained
};

/// One lane after the other: chunks and their synchronisation, the optimizer, what leaves for the next stage.
class LaneBuilder {
 public:
  LaneBuilder(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Topology& topology,
              Step& step, Recipes recipes)
      : scenario_(scenario),
        plan_(scenario.plan),
        train_(train),
        model_(model),
        topology_(topology),
        step_(step),
        transfers_(scenario, topology, step.transfers),
        pricer_(scenario, train, topology, recipes),
        sync_(scenario, pricer_, transfers_),
        chunks_(split_layers(model, plan_.pipeline, plan_.interleave)) {
    for (const LayerGroup& group : model.layers) price_of_group_.push_back(pricer_.price(group.layer));
  }

  /// All lanes anew. `cuts`: by stage.
  void build(const RankClasses& classes, const std::vector<Step::Lane::Cut>& cuts) {
    step_.lanes.clear();
    step_.activations.clear();
    step_.activation_gradients.clear();
    for (const RankClasses::Lane& lane : classes.lanes) {
      const Step::Lane::Cut cut = cuts[static_cast<std::size_t>(lane.stage)];
      add({lane.stage, static_cast<int>(step_.lanes.size()), lane.speed, cut != Step::Lane::Cut::none}, lane);
      step_.lanes.back().cut = cut;
    }
    const int boundaries = plan_.interleave > 1 ? plan_.pipeline : plan_.pipeline - 1;
    for (int s = 0; s < boundaries; ++s) add_boundary(s);
    const std::vector<std::vector<int>> companions = transfers_.companions(step_.lanes.size());
    for (std::size_t lane = 0; lane < companions.size(); ++lane) step_.lanes[lane].companions = companions[lane];
  }

  /// Where what lanes do together takes them unequally long, each collective inside their layers must be seen. True
  /// where that is more than `cuts` said.
  bool cut_unequal_companions(std::vector<Step::Lane::Cut>& cuts) const {
    bool more = false;
    for (const Step::Lane& lane : step_.lanes) {
      Step::Lane::Cut& cut = cuts[static_cast<std::size_t>(lane.stage)];
      if (lane.companions.empty() || cut == Step::Lane::Cut::all) continue;
      if (equally_long(lane, step_.lanes[at_index(lane.companions.front())])) continue;
      cut = Step::Lane::Cut::all;
      more = true;
    }
    return more;
  }
  [[nodiscard]] TransferTable& transfers() { return transfers_; }

 private:
  static bool equally_long(const Step::Lane& a, const Step::Lane& b) {
    const auto same = [](Seconds x, Seconds y) { return std::abs((x - y).value()) <= 1e-12 * y.value(); };
    for (std::size_t k = 0; k < a.chunks.size(); ++k) {
      if (!same(a.chunks[k].forward.total(), b.chunks[k].forward.total()) ||
          !same(a.chunks[k].backward.total(), b.chunks[k].backward.total())) {
        return false;
      }
    }
    return true;
  }

  void add(const GradientSync::Place& place, const RankClasses::Lane& ranks) {
    Step::Lane& lane = step_.lanes.emplace_back();
    lane.stage = ranks.stage;
    lane.first_rank = ranks.first_rank;
    lane.ranks = ranks.ranks;
    StageLayers layers;
    for (int v = 0; v < plan_.interleave; ++v) lane.chunks.push_back(chunk(place, v, layers));
    step_.parameters_per_gpu = std::max(step_.parameters_per_gpu, layers.parameters);
    set_optimizer(place, lane, layers);
    gather_parameters(place, lane, layers);
  }

  /// The chunk's layers one by one, as they are priced on the lane.
  [[nodiscard]] std::vector<PricedLayer> layers_of(const GradientSync::Place& place, int position) {
    std::vector<PricedLayer> layers;
    for (const LayerRun& run : chunks_[static_cast<std::size_t>(position)]) {
      const auto group = static_cast<std::size_t>(run.group);
      const Layer& layer = model_.layers[group].layer;
      const auto [calls, is_new] = calls_.try_emplace({place.stage, run.group});
      if (is_new) calls->second = pricer_.calls(layer, place.stage, transfers_);
      LayerCost cost = pricer_.on_lane(price_of_group_[group], calls->second, place.speed, place.lane, transfers_);
      add_offload(cost, layer, scenario_, train_, topology_);
      layers.insert(layers.end(), static_cast<std::size_t>(run.count), PricedLayer{&layer, cost, &calls->second});
    }
    return layers;
  }

  [[nodiscard]] Step::Chunk chunk(const GradientSync::Place& place, int v, StageLayers& stage) {
    Step::Chunk chunk;
    LayerCost cost;
    const int position = v * plan_.pipeline + place.stage;  // in model order
    const std::vector<PricedLayer> layers = layers_of(place, position);
    for (auto first = layers.begin(); first != layers.end();) {
      const auto next =
          std::find_if(first, layers.end(), [&](const auto& other) { return other.layer != first->layer; });
      const auto count = static_cast<int>(next - first);
      cost += first->cost * count;
      stage.parameters += first->layer->parameters * count;
      stage.in_experts += first->layer->expert_parameters * count;
      if (first->layer->parameters > 0.0) {
        stage.layers += count;
        stage.tensors += count * tensors_of(*first->layer);
      }
      first = next;
    }
    // One graph holds a micro-batch's forward and backward pass.
    if (plan_.execution == ExecutionMode::cuda_graph) {
      cost.forward_dispatch += host_dispatch_time(1, plan_.execution, scenario_.calibration.host);
    }
    chunk.forward = cost.forward();
    chunk.backward = cost.backward();
    if (place.cut) cut(layers, chunk);
    if (pricer_.keeps_recipes()) keep_recipes(layers, chunk);
    if (plan_.zero == 3) {
      sync_.add_sharded_units(place, layers, chunk);
    } else {
      sync_.add_buckets(place, layers, chunk);
    }
    return chunk;
  }

  static void cut(const std::vector<PricedLayer>& layers, Step::Chunk& chunk) {
    for (const PricedLayer& priced : layers) {
      append_forward(chunk.forward_pieces, priced);
    }
    for (auto priced = layers.rbegin(); priced != layers.rend(); ++priced) {
      append_backward(chunk.backward_pieces, *priced);
    }
    fit_pieces(chunk.forward_pieces, chunk.forward);
    fit_pieces(chunk.backward_pieces, chunk.backward);
  }

  void keep_recipes(const std::vector<PricedLayer>& layers, Step::Chunk& chunk) const {
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

  void set_optimizer(const GradientSync::Place& place, Step::Lane& lane, const StageLayers& layers) const {
    const double parameters =
        plan_.zero >= 1 ? parameters_of_shard(plan_, layers.parameters, layers.in_experts) : layers.parameters;
    const Operator update = optimizer_operator(train_, plan_, parameters, layers.layers, layers.tensors);
    if (plan_.offload.optimizer) {
      Seconds backward;
      for (const Step::Chunk& chunk : lane.chunks) backward += chunk.backward.total();
      lane.optimizer = offloaded_optimizer(parameters, backward, update, scenario_, train_, topology_);
      return;
    }
    const Seconds kernels =
        operator_cost(update, scenario_.cluster.node.gpu, scenario_.calibration).device / place.speed;
    const Seconds dispatch = host_dispatch_time(update.kernels, plan_.execution, scenario_.calibration.host);
    lane.optimizer = {kernels, Seconds(0.0), std::max(dispatch - kernels, Seconds(0.0))};
    if (pricer_.keeps_recipes()) {
      lane.optimizer_recipe = std::make_shared<const Recipe>(
          kernels_of({update}, ExecutionMode::eager, 1.0, scenario_.cluster.node.gpu, scenario_.calibration));
    }
  }

  /// ZeRO-1 and 2: updated weights go back to all replicas.
  void gather_parameters(const GradientSync::Place& place, Step::Lane& lane, const StageLayers& layers) {
    if (plan_.zero != 1 && plan_.zero != 2) return;
    std::vector<int> gathers = sync_.parameter_gathers(place.stage, layers.parameters, layers.in_experts);
    if (!plan_.sync.overlap) {
      lane.parameter_gathers = std::move(gathers);
      return;
    }
    // Runs beside the next step's first forward pass; only its first part and what does not fit there is waited for.
    Seconds time;
    for (const int gather : gathers) time += transfers_.time(gather, place.lane);
    const Seconds forward = lane.chunks.front().forward.total();
    const Seconds first = time / static_cast<double>(GradientSync::most_buckets);
    lane.optimizer.communication = first + std::max(time - first - forward, Seconds(0.0));
  }

  void add_boundary(int s) {
    const auto& last = chunks_[static_cast<std::size_t>(s)].back();
    const Bytes activation = model_.layers[static_cast<std::size_t>(last.group)].layer.output;
    step_.activations.push_back(transfers_.hop(s, false, activation));
    step_.activation_gradients.push_back(transfers_.hop(s, true, activation));
  }

  const Scenario& scenario_;
  const Plan& plan_;
  const TrainWorkload& train_;
  const Model& model_;
  const Topology& topology_;
  Step& step_;
  TransferTable transfers_;
  LayerPricer pricer_;
  GradientSync sync_;
  std::vector<std::vector<LayerRun>> chunks_;
  std::vector<LayerCost> price_of_group_;
  std::map<std::pair<int, int>, LayerCalls> calls_;  ///< by stage and group of layers
};

/// The gradients' norm for clipping: one number from every rank.
Seconds norm_time(const Scenario& scenario, const Topology& topology) {
  CollectiveCall norm;
  norm.size = Bytes(4.0);
  std::vector<int> ranks(static_cast<std::size_t>(topology.gpus()));
  for (int r = 0; r < topology.gpus(); ++r) ranks[static_cast<std::size_t>(r)] = r;
  norm.groups = {std::move(ranks)};
  if (scenario.background.empty()) return automatic_time(norm, topology, scenario.calibration);
  return uncontended_time(lower(norm, topology, scenario.calibration), topology, scenario.background);
}

/// Lanes of whole stages first: they say which transfers there are, and these, which ranks are alike and what meets.
void build_lanes(const Scenario& scenario, const Topology& topology, Symmetry symmetry, LaneBuilder builder) {
  const RankLayout layout(scenario.plan);
  const int stages = scenario.plan.pipeline;
  RankClasses classes = RankClasses::one_per_stage(stages, layout.ranks_per_stage());
  builder.build(classes, std::vector<Step::Lane::Cut>(static_cast<std::size_t>(stages)));
  std::vector<double> speeds(static_cast<std::size_t>(layout.gpus()), 1.0);
  for (const Fault& fault : scenario.cluster.faults) {
    const int rank = fault.node * topology.gpus_per_node() + fault.gpu;
    if (fault.gpu >= 0 && rank < layout.gpus()) speeds[at_index(rank)] *= fault.share;
  }
  classes =
      classify(builder.transfers().grouped(), classes.lane_of_rank, speeds, topology, scenario.background, symmetry);
  builder.transfers().divide(classes);
  std::vector<Step::Lane::Cut> cuts = builder.transfers().meetings();
  const bool whole_stages = classes.lanes.size() == static_cast<std::size_t>(stages) &&
                            std::ranges::all_of(speeds, [](double speed) { return speed == 1.0; }) &&
                            std::ranges::all_of(cuts, [](auto cut) { return cut == Step::Lane::Cut::none; });
  if (whole_stages && !builder.transfers().divided()) return;  // that is what has been built
  builder.build(classes, cuts);
  if (builder.cut_unequal_companions(cuts)) builder.build(classes, cuts);
}

}  // namespace

int Step::hop(int from_stage, int to_stage, bool backward) const {
  return backward ? activation_gradients[static_cast<std::size_t>(to_stage)]
                  : activations[static_cast<std::size_t>(from_stage)];
}

Step build_step(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Topology& topology,
                Recipes recipes, Symmetry symmetry) {
  const Plan& plan = scenario.plan;
  Step step;
  step.schedule = plan.schedule;
  step.interleave = plan.interleave;
  step.micro_batches = micro_batches(train, plan);
  step.overlap = plan.sync.overlap;
  step.every_micro_batch = plan.sync.every_micro_batch && plan.zero < 3;  // ZeRO-3 does so anyway
  build_lanes(scenario, topology, symmetry, LaneBuilder(scenario, train, model, topology, step, recipes));

  const bool clips = train.optimizer != Optimizer::sgd && train.optimizer != Optimizer::momentum;
  if (scenario.cluster.gpus() > 1 && clips) {
    step.gradient_norm = norm_time(scenario, topology);
    if (recipes == Recipes::kept) {
      step.norm_recipe = recipe_of(CollectiveWork{.size = Bytes(4.0), .ranks = topology.gpus()});
    }
  }
  step.slowest_replica = waiting_for_slowest(step, plan, model);
  step.once_per_step = Seconds(scenario.calibration.host.step_us * 1e-6);

  if (train.loader) add_loader(step, *train.loader, scenario, train, topology);
  step.model_flops_per_gpu =
      model.training_flops_per_sample() * (static_cast<double>(train.global_batch) / scenario.cluster.gpus());
  return step;
}

}  // namespace foretrain

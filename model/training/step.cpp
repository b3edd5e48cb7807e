#include "model/training/step.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

#include "model/base/error.hpp"
#include "model/collectives/contention.hpp"
#include "model/cost/launches.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/memory/stage_memory.hpp"
#include "model/training/gradient_sync.hpp"
#include "model/training/layer_cost.hpp"
#include "model/training/offload.hpp"
#include "model/training/train_loader.hpp"

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

/// Activations from a stage to the next, or their gradients back: each tensor-parallel rank sends its share to its
/// counterpart.
Step::Transfer boundary_transfer(const Scenario& scenario, int stage, bool back, Bytes activation,
                                 const Topology& topology) {
  const Plan& plan = scenario.plan;
  const RankLayout layout(plan);
  LoweredCollective::Phase phase;
  // Background traffic may disturb any of the nodes.
  const int window = scenario.background.empty() ? std::min(representative_window(topology, plan.tensor * plan.context),
                                                            layout.ranks_per_stage())
                                                 : layout.ranks_per_stage();
  for (int r = 0; r < window; ++r) {
    const int here = layout.rank(stage, 0, 0, 0) + r;
    const int next = here + layout.ranks_per_stage();
    const int source = back ? next : here;
    const int destination = back ? here : next;
    phase.flows.push_back({topology.gpu(source), topology.gpu(destination), activation / plan.tensor});
    phase.latency = std::max(phase.latency, topology.route(source, destination).latency);
  }
  Step::Transfer shared;
  shared.name = "pipeline send/receive";
  shared.lowered = {"send/receive", {std::move(phase)}};
  shared.uncontended = uncontended_time(shared.lowered, topology, scenario.background);
  return shared;
}

/// Replicas with more or longer samples finish later, and the others wait for them: once a step, or under ZeRO-3 at
/// every layer, so that each micro-batch takes as long as its slowest.
Seconds waiting_for_slowest(const Step& step, const Plan& plan, const Model& model) {
  const int together = plan.zero == 3 || step.every_micro_batch ? 1 : step.micro_batches;
  const double excess = slowest_replica(model.variation, together, plan.data) - 1.0;
  Seconds longest;
  for (const Step::Stage& stage : step.stages) {
    Seconds passes;
    for (const Step::Chunk& chunk : stage.chunks) passes += chunk.forward.total() + chunk.backward.total();
    longest = std::max(longest, passes);
  }
  return longest * (excess * step.micro_batches);
}

/// What a stage's chunks add up to.
struct StageLayers {
  double parameters = 0.0;
  int layers = 0, tensors = 0;  ///< that hold parameters, and are trained
};

/// A stage after the other: chunks and their synchronisation, the optimizer, what leaves for the next stage.
class StageBuilder {
 public:
  StageBuilder(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Topology& topology,
               Step& step, Recipes recipes)
      : scenario_(scenario),
        plan_(scenario.plan),
        train_(train),
        model_(model),
        topology_(topology),
        step_(step),
        pricer_(scenario, train, topology, recipes),
        sync_(scenario, topology, pricer_, step),
        chunks_(split_layers(model, plan_.pipeline, plan_.interleave)) {
    for (const LayerGroup& group : model.layers) {
      price_of_group_.push_back(pricer_.price(group.layer));
      add_offload(price_of_group_.back(), group.layer, scenario, train, topology);
    }
  }

  void add(int s) {
    Step::Stage& stage = step_.stages[static_cast<std::size_t>(s)];
    StageLayers layers;
    for (int v = 0; v < plan_.interleave; ++v) stage.chunks.push_back(chunk(s, v, layers));
    step_.parameters_per_gpu = std::max(step_.parameters_per_gpu, layers.parameters);
    set_optimizer(stage, layers);
    gather_parameters(s, stage, layers.parameters);
    if (s + 1 < plan_.pipeline) add_boundary(s);
  }

 private:
  [[nodiscard]] Step::Chunk chunk(int s, int v, StageLayers& stage) {
    Step::Chunk chunk;
    LayerCost cost;
    std::vector<std::pair<const Layer*, LayerCost>> layers;
    const int position = v * plan_.pipeline + s;  // in model order
    for (const LayerRun& run : chunks_[static_cast<std::size_t>(position)]) {
      const Layer& layer = model_.layers[static_cast<std::size_t>(run.group)].layer;
      const LayerCost& price = price_of_group_[static_cast<std::size_t>(run.group)];
      cost += price * run.count;
      layers.insert(layers.end(), static_cast<std::size_t>(run.count), {&layer, price});
      stage.parameters += layer.parameters * run.count;
      if (layer.parameters > 0.0) {
        stage.layers += run.count;
        stage.tensors += run.count * tensors_of(layer);
      }
    }
    // One graph holds a micro-batch's forward and backward pass.
    if (plan_.execution == ExecutionMode::cuda_graph) {
      cost.forward_dispatch += host_dispatch_time(1, plan_.execution, scenario_.calibration.host);
    }
    chunk.forward = cost.forward();
    chunk.backward = cost.backward();
    if (pricer_.keeps_recipes()) keep_recipes(layers, chunk);
    if (plan_.zero == 3) {
      sync_.add_sharded_units(s, layers, chunk);
    } else {
      sync_.add_buckets(s, layers, chunk);
    }
    return chunk;
  }

  void keep_recipes(const std::vector<std::pair<const Layer*, LayerCost>>& layers, Step::Chunk& chunk) const {
    std::vector<Operator> forward, backward;
    for (const auto& [layer, price] : layers) {
      forward.insert(forward.end(), layer->forward.begin(), layer->forward.end());
    }
    for (const auto& [layer, price] : std::views::reverse(layers)) {
      const std::vector<Operator> ops = pricer_.backward_operators(*layer);
      backward.insert(backward.end(), ops.begin(), ops.end());
    }
    chunk.forward_recipe = pricer_.recipe(forward);
    chunk.backward_recipe = pricer_.recipe(backward);
  }

  [[nodiscard]] double shards() const { return static_cast<double>(plan_.data) * plan_.context; }

  void set_optimizer(Step::Stage& stage, const StageLayers& layers) const {
    const double parameters = layers.parameters / (plan_.zero >= 1 ? shards() : 1.0);
    const Operator update = optimizer_operator(train_, plan_, parameters, layers.layers, layers.tensors);
    if (plan_.offload.optimizer) {
      Seconds backward;
      for (const Step::Chunk& chunk : stage.chunks) backward += chunk.backward.total();
      stage.optimizer = offloaded_optimizer(parameters, backward, update, scenario_, train_, topology_);
      return;
    }
    const Seconds kernels = operator_cost(update, scenario_.cluster.node.gpu, scenario_.calibration).device;
    const Seconds dispatch = host_dispatch_time(update.kernels, plan_.execution, scenario_.calibration.host);
    stage.optimizer = {kernels, Seconds(0.0), std::max(dispatch - kernels, Seconds(0.0))};
    if (pricer_.keeps_recipes()) {
      stage.optimizer_recipe = std::make_shared<const Recipe>(
          kernels_of({update}, ExecutionMode::eager, 1.0, scenario_.cluster.node.gpu, scenario_.calibration));
    }
  }

  /// ZeRO-1 and 2: updated weights go back to all replicas.
  void gather_parameters(int s, Step::Stage& stage, double parameters) {
    if ((plan_.zero != 1 && plan_.zero != 2) || !(shards() > 1)) return;
    const int gather = sync_.parameter_gather(s, parameters);
    if (!plan_.sync.overlap) {
      stage.parameter_gather = gather;
      return;
    }
    // Runs beside the next step's first forward pass; only its first part and what does not fit there is waited for.
    const Seconds time = step_.transfers[static_cast<std::size_t>(gather)].uncontended;
    const Seconds forward = stage.chunks.front().forward.total();
    const Seconds first = time / static_cast<double>(GradientSync::most_buckets);
    stage.optimizer.communication = first + std::max(time - first - forward, Seconds(0.0));
  }

  void add_boundary(int s) {
    const auto& last = chunks_[static_cast<std::size_t>(s)].back();
    const Bytes activation = model_.layers[static_cast<std::size_t>(last.group)].layer.output;
    step_.activations.push_back(static_cast<int>(step_.transfers.size()));
    step_.transfers.push_back(boundary_transfer(scenario_, s, false, activation, topology_));
    step_.activation_gradients.push_back(static_cast<int>(step_.transfers.size()));
    step_.transfers.push_back(boundary_transfer(scenario_, s, true, activation, topology_));
  }

  const Scenario& scenario_;
  const Plan& plan_;
  const TrainWorkload& train_;
  const Model& model_;
  const Topology& topology_;
  Step& step_;
  LayerPricer pricer_;
  GradientSync sync_;
  std::vector<std::vector<LayerRun>> chunks_;
  std::vector<LayerCost> price_of_group_;
};

/// The gradients' norm for clipping: one number from every rank.
Seconds norm_time(const Scenario& scenario, const Topology& topology) {
  CollectiveCall norm;
  norm.size = Bytes(4.0);
  std::vector<int> ranks(static_cast<std::size_t>(topology.gpus()));
  for (int r = 0; r < topology.gpus(); ++r) ranks[static_cast<std::size_t>(r)] = r;
  norm.groups = {std::move(ranks)};
  return uncontended_time(lower(norm, topology, scenario.calibration), topology, scenario.background);
}

}  // namespace

int Step::hop(int from_stage, int to_stage, bool backward) const {
  const int lower_stage = std::min({from_stage, to_stage, stage_count() - 2});
  return (backward ? activation_gradients : activations)[static_cast<std::size_t>(lower_stage)];
}

Step build_step(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Topology& topology,
                Recipes recipes) {
  const Plan& plan = scenario.plan;
  Step step;
  step.interleave = plan.interleave;
  step.micro_batches = micro_batches(train, plan);
  step.overlap = plan.sync.overlap;
  step.every_micro_batch = plan.sync.every_micro_batch && plan.zero < 3;  // ZeRO-3 does so anyway
  step.stages.resize(static_cast<std::size_t>(plan.pipeline));
  StageBuilder stages(scenario, train, model, topology, step, recipes);
  for (int s = 0; s < plan.pipeline; ++s) stages.add(s);

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

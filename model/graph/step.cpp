#include "model/graph/step.hpp"

#include <algorithm>
#include <utility>

#include "model/base/error.hpp"
#include "model/collectives/contention.hpp"
#include "model/cost/host.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/graph/gradient_sync.hpp"
#include "model/graph/layer_cost.hpp"
#include "model/graph/offload.hpp"
#include "model/graph/train_loader.hpp"
#include "model/plan/stage_memory.hpp"

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
SharedTransfer boundary_transfer(const Scenario& scenario, int stage, bool back, Bytes activation,
                                 const Topology& topology) {
  const Plan& plan = scenario.plan;
  const RankLayout layout(plan);
  LoweredPhase phase;
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
  SharedTransfer shared;
  shared.name = "pipeline send/receive";
  shared.lowered = {"send/receive", {std::move(phase)}};
  shared.isolated = isolated_time(shared.lowered, topology, scenario.background);
  return shared;
}

/// Replicas with more or longer samples finish later, and the others wait for them: once a step, or under ZeRO-3 at
/// every layer, so that each micro-batch takes as long as its slowest.
Seconds waiting_for_slowest(const Step& step, const Plan& plan, const Model& model) {
  const int together = plan.zero == 3 || step.every_micro_batch ? 1 : step.micro_batches;
  const double excess = slowest_replica(model.variation, together, plan.data) - 1.0;
  Seconds longest;
  for (const PipelineStage& stage : step.stages) {
    Seconds passes;
    for (const ModelChunk& chunk : stage.chunks) passes += chunk.forward.total() + chunk.backward.total();
    longest = std::max(longest, passes);
  }
  return longest * (excess * step.micro_batches);
}

}  // namespace

int Step::hop(int from_stage, int to_stage, bool backward) const {
  const int lower_stage = std::min({from_stage, to_stage, stage_count() - 2});
  return (backward ? activation_gradients : activations)[static_cast<std::size_t>(lower_stage)];
}

Step build_step(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Topology& topology) {
  const Plan& plan = scenario.plan;
  const HostConstants& host = scenario.calibration.host;
  const Gpu& gpu = scenario.cluster.node.gpu;

  Step step;
  step.interleave = plan.interleave;
  step.micro_batches = micro_batches(train, plan);
  step.overlap = plan.sync.overlap;
  step.every_micro_batch = plan.sync.every_micro_batch && plan.zero < 3;  // ZeRO-3 does so anyway
  step.stages.resize(static_cast<std::size_t>(plan.pipeline));

  LayerPricer pricer(scenario, train, topology);
  std::vector<LayerCost> price_of_group;
  for (const LayerGroup& group : model.layers) {
    price_of_group.push_back(pricer.price(group.layer));
    add_offload(price_of_group.back(), group.layer, scenario, train, topology);
  }

  const auto chunks = split_layers(model, plan.pipeline, plan.interleave);
  GradientSync sync(scenario, topology, pricer, step);
  const double shards = static_cast<double>(plan.data) * plan.context;
  for (int s = 0; s < plan.pipeline; ++s) {
    PipelineStage& stage = step.stages[static_cast<std::size_t>(s)];
    double parameters = 0.0;
    int layer_count = 0, tensors = 0;
    for (int v = 0; v < plan.interleave; ++v) {
      ModelChunk chunk;
      LayerCost cost;
      std::vector<std::pair<const Layer*, LayerCost>> layers;
      const int position = v * plan.pipeline + s;  // in model order
      for (const LayerRun& run : chunks[static_cast<std::size_t>(position)]) {
        const Layer& layer = model.layers[static_cast<std::size_t>(run.group)].layer;
        const LayerCost& price = price_of_group[static_cast<std::size_t>(run.group)];
        cost += price * run.count;
        layers.insert(layers.end(), static_cast<std::size_t>(run.count), {&layer, price});
        parameters += layer.parameters * run.count;
        if (layer.parameters > 0.0) {
          layer_count += run.count;
          tensors += run.count * tensors_of(layer);
        }
      }
      // One graph holds a micro-batch's forward and backward pass.
      if (plan.execution == ExecutionMode::cuda_graph)
        cost.forward_dispatch += host_dispatch_time(1, plan.execution, host);
      chunk.forward = cost.forward();
      chunk.backward = cost.backward();
      if (plan.zero == 3) {
        sync.add_sharded_units(s, layers, chunk);
      } else {
        sync.add_buckets(s, layers, chunk);
      }
      stage.chunks.push_back(std::move(chunk));
    }
    step.parameters_per_gpu = std::max(step.parameters_per_gpu, parameters);
    const bool sharded = plan.zero >= 1;
    const Operator update =
        optimizer_operator(train, plan, parameters / (sharded ? shards : 1.0), layer_count, tensors);
    const Seconds kernels = operator_cost(update, gpu, scenario.calibration).device;
    const Seconds dispatch = host_dispatch_time(update.kernels, plan.execution, host);
    stage.optimizer = {kernels, Seconds(0.0), std::max(dispatch - kernels, Seconds(0.0))};
    if (plan.offload.optimizer) {
      Seconds backward;
      for (const ModelChunk& chunk : stage.chunks) backward += chunk.backward.total();
      stage.optimizer =
          offloaded_optimizer(parameters / (sharded ? shards : 1.0), backward, update, scenario, train, topology);
    }
    if ((plan.zero == 1 || plan.zero == 2) && shards > 1) {
      const int gather = sync.parameter_gather(s, parameters);
      if (plan.sync.overlap) {
        // Runs beside the next step's first forward pass; only its first part and what does not fit there is waited
        // for.
        const Seconds time = step.transfers[static_cast<std::size_t>(gather)].isolated;
        const Seconds forward = stage.chunks.front().forward.total();
        const Seconds first = time / static_cast<double>(GradientSync::most_buckets);
        stage.optimizer.communication = first + std::max(time - first - forward, Seconds(0.0));
      } else {
        stage.parameter_gather = gather;
      }
    }
    if (s + 1 < plan.pipeline) {
      const auto& last = chunks[static_cast<std::size_t>(s)].back();
      const Bytes activation = model.layers[static_cast<std::size_t>(last.group)].layer.output;
      step.activations.push_back(static_cast<int>(step.transfers.size()));
      step.transfers.push_back(boundary_transfer(scenario, s, false, activation, topology));
      step.activation_gradients.push_back(static_cast<int>(step.transfers.size()));
      step.transfers.push_back(boundary_transfer(scenario, s, true, activation, topology));
    }
  }

  if (scenario.cluster.gpus() > 1 && train.optimizer != Optimizer::sgd && train.optimizer != Optimizer::momentum) {
    // The gradients' norm for clipping: one number from every rank.
    CollectiveCall norm;
    norm.size = Bytes(4.0);
    std::vector<int> ranks(static_cast<std::size_t>(topology.gpus()));
    for (int r = 0; r < topology.gpus(); ++r) ranks[static_cast<std::size_t>(r)] = r;
    norm.groups = {std::move(ranks)};
    step.gradient_norm = isolated_time(lower(norm, topology, scenario.calibration), topology, scenario.background);
  }
  step.slowest_replica = waiting_for_slowest(step, plan, model);
  step.once_per_step = Seconds(host.step_us * 1e-6);

  if (train.loader) add_loader(step, *train.loader, scenario, train, topology);
  step.model_flops_per_gpu =
      model.training_flops_per_sample() * (static_cast<double>(train.global_batch) / scenario.cluster.gpus());
  return step;
}

}  // namespace foretrain

#include "model/plan/memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/plan/layout.hpp"
#include "model/plan/stages.hpp"
#include "model/workload/build.hpp"

namespace foretrain {

namespace {

Bytes saved_bytes(const Layer& layer, Recompute recompute) {
  if (recompute == Recompute::full && layer.recomputable) return layer.saved_full;
  if (recompute == Recompute::selective) return layer.saved_selective;
  return layer.saved;
}

struct StageNeeds {
  double parameters = 0.0;
  double largest_layer = 0.0;  // parameters
  std::vector<WeightMatrix> matrices;
  Bytes activations_per_pass;  // one micro-batch through one chunk, the stage's mean
  Bytes recomputed;            // one layer's activations, alive while it is recomputed
  Bytes workspace;
};

StageNeeds needs_of_stage(const Model& model, const std::vector<std::vector<LayerRun>>& chunks, int stage,
                          const Plan& plan, Recompute recompute) {
  StageNeeds needs;
  for (std::size_t k = static_cast<std::size_t>(stage); k < chunks.size();
       k += static_cast<std::size_t>(plan.pipeline)) {
    for (const LayerRun& run : chunks[k]) {
      const Layer& layer = model.layers[static_cast<std::size_t>(run.group)].layer;
      needs.parameters += layer.parameters * run.count;
      needs.largest_layer = std::max(needs.largest_layer, layer.parameters);
      if (plan.sync.compression.kind == Compression::Kind::powersgd) {
        for (WeightMatrix matrix : layer.matrices) {
          matrix.count *= run.count;
          needs.matrices.push_back(matrix);
        }
      }
      needs.activations_per_pass += saved_bytes(layer, recompute) * static_cast<double>(run.count);
      needs.workspace = std::max(needs.workspace, layer.workspace);
      if (recompute == Recompute::full && layer.recomputable)
        needs.recomputed = std::max(needs.recomputed, layer.saved);
    }
  }
  needs.activations_per_pass /= static_cast<double>(plan.interleave);
  return needs;
}

/// What compression keeps from step to step (under ZeRO-3 a cast's error is that of the gradients before they are
/// scattered), and what it sends and receives of a bucket while the gradients themselves are there as well.
Bytes compression_needs(const Scenario& scenario, const StageNeeds& needs) {
  const Plan& plan = scenario.plan;
  const Compression& compression = plan.sync.compression;
  const int replicas = plan.data * plan.context;
  if (replicas == 1 || compression.kind == Compression::Kind::none) return Bytes(0.0);
  const Precision precision = plan.sync.gradient_precision;
  Bytes buffers;
  const double in_bucket = std::min(plan.sync.bucket / bytes_per_element(precision), needs.parameters);
  if (compression.casts() && cast_bytes(compression, precision) < bytes_per_element(precision)) {
    buffers = cast_bytes(compression, precision) * in_bucket;
  } else if (compression.kind == Compression::Kind::top_k) {
    const CompressionWork work = compression_work(compression, {in_bucket, {}}, precision, replicas);
    buffers = work.messages.front().size * (1.0 + replicas);
  } else if (compression.error_feedback) {
    buffers = bytes_per_element(precision) * in_bucket;  // PowerSGD's copy
  }
  return buffers + compression_memory(compression, {needs.parameters, needs.matrices}, precision);
}

}  // namespace

Bytes optimizer_state(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return Bytes(0.0);
    case Optimizer::momentum:
      return Bytes(4.0);
    case Optimizer::adam:
    case Optimizer::adamw:
      return Bytes(8.0);
  }
  return Bytes(0.0);
}

MemoryFootprint memory_footprint(const Scenario& scenario, const TrainWorkload& train, const Model& model) {
  const Plan& plan = scenario.plan;
  const MemoryConstants& constants = scenario.calibration.memory;
  const auto chunks = split_layers(model, plan.pipeline, plan.interleave);
  const int passes = micro_batches(train, plan);
  const double shards = static_cast<double>(plan.data) * plan.context;
  const bool sharded = plan.zero == 3;
  const Bytes state = optimizer_state(train.optimizer) + Bytes(train.master_weights ? 4.0 : 0.0);

  MemoryFootprint worst;
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    const StageNeeds needs = needs_of_stage(model, chunks, stage, plan, train.recompute);
    const Bytes weight = bytes_per_element(storage_precision(train.precision));
    const Bytes gradient = bytes_per_element(plan.sync.gradient_precision);
    MemoryFootprint m;
    m.weights = weight * (needs.parameters / (sharded ? shards : 1.0));
    m.gradients = gradient * (needs.parameters / (plan.zero >= 2 ? shards : 1.0));
    m.optimizer = state * (needs.parameters / (plan.zero >= 1 ? shards : 1.0));
    m.activations = needs.activations_per_pass *
                    static_cast<double>(passes_in_flight(plan.pipeline, stage, plan.interleave, passes));
    m.workspace = needs.workspace + needs.recomputed;
    if (sharded) m.workspace += (weight * 2.0 + gradient) * needs.largest_layer;  // two gathered layers, one gradient
    if (plan.data > 1 && plan.zero < 3) m.workspace += plan.sync.bucket;
    m.workspace += compression_needs(scenario, needs);
    m.workspace += Bytes(constants.context_mib * 1048576.0);
    m.workspace += (m.activations + needs.workspace) * constants.fragmentation;
    if (m.total() > worst.total()) worst = m;
  }
  worst.capacity = scenario.cluster.node.gpu.memory;
  return worst;
}

std::vector<std::string> remedies_for_memory(const Scenario& scenario, const TrainWorkload& train) {
  const auto footprint_of = [](const Scenario& s, const TrainWorkload& t) {
    return memory_footprint(s, t, build_model(t.model, build_options(t, s.plan)));
  };
  std::vector<std::string> remedies;
  if (footprint_of(scenario, train).fits()) return remedies;
  const auto consider = [&](const Scenario& s, const TrainWorkload& t, const std::string& change) {
    const MemoryFootprint m = footprint_of(s, t);
    if (m.fits()) {
      remedies.push_back(
          fmt::format("fits with {}: {:.1f} of {:.1f} GB", change, m.total().value() / 1e9, m.capacity.value() / 1e9));
    }
    return m.fits();
  };

  if (train.recompute != Recompute::full) {
    TrainWorkload t = train;
    t.recompute = Recompute::full;
    consider(scenario, t, "recompute: full");
  }
  for (std::int64_t micro = train.micro_batch / 2; micro >= 1; micro /= 2) {
    if (train.micro_batch % micro != 0) continue;
    TrainWorkload t = train;
    t.micro_batch = micro;
    if (consider(scenario, t, fmt::format("micro_batch: {}", micro))) break;
  }
  // Sharding over the replicas that there are, or over more cards of the same kind.
  for (int zero = std::max(scenario.plan.zero, 1); zero <= 3; ++zero) {
    for (int replicas = std::max(scenario.plan.data, 2); replicas <= 512; replicas *= 2) {
      bool found = false;
      for (const Recompute recompute : {train.recompute, Recompute::full}) {
        Scenario s = scenario;
        TrainWorkload t = train;
        s.plan.zero = zero;
        s.plan.data = replicas;
        t.recompute = recompute;
        t.global_batch = std::max<std::int64_t>(t.global_batch, t.micro_batch * replicas);
        t.global_batch -= t.global_batch % (t.micro_batch * replicas);
        const int gpus = replicas * s.plan.tensor * s.plan.pipeline * s.plan.context;
        found = consider(s, t,
                         fmt::format("zero: {} over {} replicas ({} GPUs){}", zero, replicas, gpus,
                                     recompute != train.recompute ? " and recompute: full" : ""));
        if (found || train.recompute == Recompute::full) break;
      }
      if (found) break;
    }
  }
  return remedies;
}

}  // namespace foretrain

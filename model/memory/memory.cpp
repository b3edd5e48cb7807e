#include "model/memory/memory.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/base/statistics.hpp"
#include "model/parallelism/layout.hpp"

namespace foretrain {

namespace {

/// Passes of a stage; no more micro-batches than it takes until as many are in flight as ever will be, which with all
/// forward passes first is all of them.
struct StageOrder {
  StageOrder(const TrainWorkload& train, const Plan& plan, int stage)
      : micro_batches(plan.schedule == PipelineSchedule::gpipe
                          ? foretrain::micro_batches(train, plan)
                          : std::min(foretrain::micro_batches(train, plan), 3 * plan.pipeline)),
        passes(pipeline_order(plan.schedule, plan.pipeline, stage, plan.interleave, micro_batches)) {}
  int micro_batches;
  std::vector<PipelinePass> passes;
};

/// Calls pass(which, bytes kept by all others) for each forward and backward pass in order. One that makes the
/// gradients of weights alone only frees what was kept for them.
template <typename Visit>
void walk(const StageOrder& order, const StageMemory& memory, const Visit& visit) {
  Bytes alive;
  for (const PipelinePass& pass : order.passes) {
    const StageMemory::Chunk& chunk = memory.chunks()[static_cast<std::size_t>(pass.chunk)];
    if (pass.kind == PassKind::weights) {
      alive -= chunk.kept_for_weights;
      continue;
    }
    if (pass.backward()) alive -= chunk.kept;
    visit(pass, alive);
    if (!pass.backward()) alive += chunk.kept;
    if (pass.kind == PassKind::inputs) alive += chunk.kept_for_weights;
  }
}

struct StagePeak {
  MemoryParts parts;
  Bytes activations_on_host;
};

/// The moments of a pass while `others` are kept.
void visit_moments(const StageMemory& memory, const PipelinePass& pass, Bytes others, bool every_layer,
                   const StageMemory::Emit& emit) {
  if (pass.backward()) {
    memory.backward(pass.chunk, pass.kind == PassKind::inputs, others, every_layer, emit);
  } else {
    memory.forward(pass.chunk, others, every_layer, emit);
  }
}

/// Between passes of one kind and chunk only what the others keep differs: the one with most of that is looked into.
StagePeak peak_of(const StageMemory& memory, const StageOrder& order) {
  struct Fullest {
    PipelinePass pass;
    Bytes others = Bytes(-1.0);
  };
  std::vector<PerPass<Fullest>> fullest(memory.chunks().size());
  StagePeak peak;
  walk(order, memory, [&](const PipelinePass& pass, Bytes others) {
    const auto chunk = static_cast<std::size_t>(pass.chunk);
    Fullest& known = fullest[chunk][pass.kind];
    if (others > known.others) known = {pass, others};
    peak.activations_on_host = std::max(peak.activations_on_host, others + memory.chunks()[chunk].kept);
  });
  const StageMemory::Emit keep_fullest = [&](MemoryTimeline::Phase, const StageMemory::Layers&, int,
                                             const MemoryParts& parts) {
    if (parts.total() > peak.parts.total()) peak.parts = parts;
  };
  for (const auto& of_chunk : fullest) {
    for (const auto& [pass, others] : of_chunk) {
      if (others >= Bytes(0.0)) visit_moments(memory, pass, others, false, keep_fullest);
    }
  }
  if (const MemoryParts update = memory.update(); update.total() > peak.parts.total()) peak.parts = update;
  return peak;
}

/// The smallest of the GPUs on which a stage runs.
struct SmallestGpu {
  Bytes memory;
  int node = 0;
};
SmallestGpu smallest_gpu(const Scenario& scenario, int stage) {
  const Cluster& cluster = scenario.cluster;
  if (cluster.groups.empty()) return {cluster.node.gpu.memory, 0};
  const bool laid_out = RankLayout(scenario.plan).gpus() == plan_gpus(scenario.plan, cluster);  // not what remedies try
  SmallestGpu smallest{Bytes::infinity(), 0};
  for (const int node :
       laid_out ? nodes_of_stages(scenario.plan, cluster)[at_index(stage)] : nodes_of(scenario.plan, cluster)) {
    const Bytes memory = cluster.node_at(node).gpu.memory;
    if (memory < smallest.memory) smallest = {memory, node};
  }
  return smallest;
}

}  // namespace

MemoryFootprint memory_footprint(const Scenario& scenario, const TrainWorkload& train, const Model& model) {
  const Plan& plan = scenario.plan;
  const auto chunks = split_layers(model, plan);
  const ChunkPlacement placement(plan);
  MemoryFootprint worst;
  Bytes host;
  std::optional<StageMemory> of_layers;
  using enum PipelineSchedule;
  const bool in_flight_falls = plan.schedule == one_forward_one_backward || plan.schedule == interleaved;
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    const bool as_before = of_layers && same_layers(chunks, placement, stage - 1, stage);
    if (as_before && in_flight_falls && scenario.cluster.groups.empty()) continue;  // it holds no more
    if (!as_before) of_layers.emplace(scenario, train, model, chunks, stage);
    const StageMemory& memory = *of_layers;
    auto [parts, activations_on_host] = peak_of(memory, StageOrder(train, plan, stage));
    const auto [capacity, node] = smallest_gpu(scenario, stage);
    Bytes on_host = memory.host() + (plan.offload.activations ? activations_on_host : Bytes(0.0));
    if (is_paged(train.optimizer)) {  // the part that does not fit
      Bytes& states = parts[MemoryPart::optimizer];
      const Bytes moved = std::clamp(parts.total() - capacity * (1.0 - plan.headroom), Bytes(0.0), states);
      states -= moved;
      on_host += moved;
    }
    if (!plan.offload_to_disks) host = std::max(host, on_host);
    if (stage == 0 && train.logged_memory == LoggedMemory::first_reserved) {
      worst.logged = parts.total() - memory.outside_framework();
    }
    if (stage > 0 && !(parts.total() - capacity > worst.total() - worst.capacity)) continue;
    worst.capacity = capacity;
    worst.node = node;
    worst.weights = parts[MemoryPart::weights];
    worst.gradients = parts[MemoryPart::gradients];
    worst.optimizer = parts[MemoryPart::optimizer];
    worst.activations = parts[MemoryPart::activations];
    worst.workspace = Bytes(0.0);
    for (auto part = static_cast<std::size_t>(MemoryPart::recomputed); part < memory_part_count; ++part) {
      worst.workspace += parts.size.at(part);
    }
  }
  worst.headroom = plan.headroom;
  worst.host = host * static_cast<double>(scenario.cluster.gpus_per_node);
  worst.host_capacity = scenario.cluster.node.cpu.memory;
  return worst;
}

MemoryTimeline memory_timeline(const Scenario& scenario, const TrainWorkload& train, const Model& model) {
  const Plan& plan = scenario.plan;
  const auto chunks = split_layers(model, plan);
  MemoryTimeline timeline;
  Bytes most;
  for (int stage = 0; stage < plan.pipeline; ++stage) {
    const StageMemory memory(scenario, train, model, chunks, stage);
    const Bytes peak = peak_of(memory, StageOrder(train, plan, stage)).parts.total();
    const Bytes capacity = smallest_gpu(scenario, stage).memory;
    if (stage == 0 || peak - capacity > most - timeline.capacity) {
      most = peak;
      timeline.stage = stage;
      timeline.capacity = capacity;
    }
  }
  const StageMemory memory(scenario, train, model, chunks, timeline.stage);
  const StageOrder order(train, plan, timeline.stage);
  int micro_batch = 0;
  const StageMemory::Emit append = [&](MemoryTimeline::Phase phase, const StageMemory::Layers& run, int index,
                                       const MemoryParts& parts) {
    timeline.moments.push_back({phase, micro_batch, run.first + index, run.layer->name, parts});
  };
  walk(order, memory, [&](const PipelinePass& pass, Bytes others) {
    micro_batch = pass.micro_batch;
    visit_moments(memory, pass, others, true, append);
  });
  timeline.moments.push_back({MemoryTimeline::Phase::optimizer, -1, -1, "", memory.update()});
  const auto fullest = std::ranges::max_element(
      timeline.moments, {}, [](const MemoryTimeline::Moment& moment) { return moment.parts.total(); });
  timeline.peak = static_cast<std::size_t>(fullest - timeline.moments.begin());
  timeline.micro_batches = micro_batches(train, plan);
  timeline.shown = order.micro_batches;
  return timeline;
}

double chance_of_shortage(double filled, double spread) {
  if (!(filled > 0.0)) return 0.0;
  if (!(spread > 0.0)) return filled > 1.0 ? 1.0 : 0.0;
  return normal_cumulative(std::log(filled) / spread);
}

double spread_of_shortfall(double shortfall) { return std::log1p(shortfall) / normal_quantile(0.9); }

}  // namespace foretrain

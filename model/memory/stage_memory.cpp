#include "model/memory/stage_memory.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include "model/base/number.hpp"
#include "model/memory/allocator.hpp"
#include "model/parallelism/layout.hpp"
#include "model/parallelism/weight_gradients.hpp"

namespace foretrain {

namespace {

constexpr Bytes fp32 = bytes_per_element(Precision::fp32);

/// Tokens of samples that are frequent: the free blocks that they leave, too short for the longest sample, grow no more
/// where only a few are longer (1,024 to 4,096 with nearly the same error, rows as of trainer ddp's fragmentation).
constexpr double usual_sample = 2048.0;

/// Memory beside the kept tensors while a layer's forward pass runs. Without recomputation all are kept; the
/// scores that attention throws away live at once, intermediates of a whole layer do not.
Bytes forward_temporaries(const Layer& layer, Recompute recompute, Bytes dropped) {
  if (recompute == Recompute::none) return Bytes(0.0);
  return recompute == Recompute::selective ? dropped : std::min(layer.workspace, dropped);
}

/// Memory that compression keeps from step to step (under ZeRO-3 a cast's error is that of the gradients before they
/// are scattered), and what it sends and receives of a bucket while the gradients themselves are there as well.
Bytes compression_needs(const Plan& plan, double parameters, const std::vector<WeightMatrix>& matrices) {
  const Compression& compression = plan.sync.compression;
  const int replicas = replicas_of(plan);
  if (replicas == 1 || compression.kind == Compression::Kind::none) return Bytes(0.0);
  const Precision precision = plan.sync.gradient_precision;
  const double in_bucket = std::min(plan.sync.bucket / bytes_per_element(precision), parameters);
  return compression_buffers(compression, in_bucket, precision, replicas) +
         compression_memory(compression, {parameters, matrices}, precision);
}

/// On a processor a convolution computes on copies of its tensors, in whole vectors of 16 channels
/// (kernels_processor.cpp).
Bytes blocked_copies(const Layer& layer) {
  constexpr double lanes = 16.0;
  constexpr std::int64_t image_channels = 3;  // which have kernels of their own
  const auto padded = [](std::int64_t channels) {
    return channels <= image_channels ? number(channels) : std::ceil(number(channels) / lanes) * lanes;
  };
  Bytes most;
  for (const Operator& op : layer.forward) {
    const auto* const work = std::get_if<Convolution>(&op.work);
    if (!work) continue;
    const double pixels_in = number(work->n) * number(work->h) * number(work->w);
    const double pixels_out = number(work->n) * number(work->p) * number(work->q);
    most = std::max(most, fp32 * (pixels_in * padded(work->c) + pixels_out * padded(work->k)));
  }
  return most;
}

/// Groups of ranks that this GPU communicates in; each has a communicator with channels of its own.
int communicators(const Plan& plan) {
  return (replicas_of(plan) > 1) + (plan.tensor > 1) + (plan.pipeline > 1) + (plan.context > 1) + (plan.expert > 1) +
         (copies_of_shard(plan) > 1);
}

/// Bytes per parameter of a GPU.
struct ParameterBytes {
  Bytes weight, gradient, master, state;
};

/// Whether only fp32 weights stay. Casts for a step's only pass go as its gradients come. Gradients go after the update
/// where nothing accumulates in their place (PyTorch, torch.amp: autograd keeps casts; Optimizer.zero_grad:
/// set_to_none).
bool casts_give_way(const Plan& plan, const TrainWorkload& train) {
  return train.code.cache_cast_weights && plan.data == 1 && micro_batches(train, plan) == 1;
}

ParameterBytes bytes_of_parameter(const Plan& plan, const TrainWorkload& train) {
  const Bytes weight = bytes_per_element(storage_precision(train.precision));
  const Bytes gradient = bytes_per_element(plan.sync.gradient_precision);
  const bool on_servers = servers_update(plan);
  Bytes state = on_servers ? Bytes(0.0) : optimizer_state(train);
  if (train.parts.lora && train.code.fp32_adapters) return {fp32, fp32, Bytes(0.0), state};
  // FSDP shards the fp32 weights themselves and gathers them in the shorter format: there is no second copy.
  if ((plan.zero == 3 || casts_give_way(plan, train)) && train.master_weights) return {fp32, fp32, Bytes(0.0), state};
  // Without fp32 weights there are tensors of one format alone (PyTorch, optim/adamw.py: zeros_like of the parameter).
  if (!train.master_weights && !train.code.cache_cast_weights && !train.code.fp32_states && weight < fp32) {
    if (!has_8bit_states(train.optimizer)) state = state * (weight / bytes_per_element(train.state_precision));
    return {weight, std::min(weight, gradient), Bytes(0.0), state};
  }
  // Of the last micro-batches they are made while activations go; where a forward pass follows, blocks are left between
  // what it keeps, as large as they are.
  const bool follows = micro_batches(train, plan) > plan.pipeline || plan.zero == 0;
  const bool added_apart = plan.sync.fp32_accumulation && !divides_gradients(plan) && weight < gradient && follows;
  return {weight, gradient + (added_apart ? weight : Bytes(0.0)),
          train.master_weights && !on_servers ? fp32 : Bytes(0.0), state};
}

/// A frozen weight that only products read is kept as those read it where modules cast their own operands: nothing
/// updates a longer one (Transformer Engine, fp8_model_init; NeMo and Megatron-Bridge: fp8_params, fp8_param_gather).
Bytes frozen_weight(const Layer& layer, const TrainWorkload& train) {
  if (train.parts.quantised.any()) return bytes_per_element(storage_precision(train.precision)) * layer.frozen_share;
  const bool cast = std::ranges::any_of(layer.forward, [&](const Operator& op) {
    return std::holds_alternative<Matmul>(op.work) && op.precision == train.precision;
  });
  const bool short_ones = train.code.casts_in_modules(train.precision) && cast;
  return bytes_per_element(short_ones ? train.precision : storage_precision(train.precision));
}

/// Bytes of the allocator's segments beyond tensors of weights, gradients and states.
Bytes beyond_tensors(const std::vector<StageMemory::Chunk>& chunks, const Plan& plan, const ParameterBytes& each,
                     double shards) {
  const Plan::Offload& offload = plan.offload;
  std::vector<TensorSizes> tensors;
  const auto add = [&](const WeightMatrix& matrix, double count, bool divided, Bytes size) {
    const double ranks = divided ? shards / (matrix.of_experts ? plan.expert : 1) : 1.0;
    if (count > 0.0 && size.value() > 0.0) tensors.push_back({matrix.elements() / ranks * size, count});
  };
  for (const StageMemory::Chunk& chunk : chunks) {
    for (const StageMemory::Layers& run : chunk.layers) {
      for (const WeightMatrix& matrix : run.layer->matrices) {
        const double count = static_cast<double>(matrix.count) * run.count;
        if (!offload.parameters) add(matrix, count, plan.zero == 3, each.weight);
        if (offload.optimizer) continue;
        add(matrix, count, divides_gradients(plan), each.gradient);
        add(matrix, count * static_cast<int>(each.state.value() / 4.0), plan.zero >= 1, fp32);
        add(matrix, count, plan.zero >= 1, each.master);
      }
    }
  }
  Bytes raw;
  for (const TensorSizes& tensor : tensors) raw += tensor.size * tensor.count;
  return std::max(segments_of(tensors) - raw, Bytes(0.0));
}

}  // namespace

Bytes bytes_per_parameter(const Plan& plan, const TrainWorkload& train) {
  const ParameterBytes each = bytes_of_parameter(plan, train);
  return each.weight + each.gradient + each.master + each.state;
}

Bytes optimizer_state(const TrainWorkload& train) {
  const Bytes state = bytes_per_element(train.state_precision);
  switch (train.optimizer) {
    case Optimizer::sgd:
      return Bytes(0.0);
    case Optimizer::momentum:
    case Optimizer::lars:
    case Optimizer::muon:
      return state;
    case Optimizer::adamw_8bit:
    case Optimizer::paged_adamw_8bit:
      return Bytes(2.0 * (1.0 + 4.0 / 2048.0));
    case Optimizer::adam:
    case Optimizer::adamw:
    case Optimizer::lamb:
    case Optimizer::paged_adamw_32bit:
      break;
  }
  return state * 2.0;
}

StageMemory::StageMemory(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Chunks& chunks,
                         int stage)
    : shards_(shards_of(scenario.plan)),
      fragmentation_(scenario.cluster.node.gpu.processor
                         ? 0.0  // a heap, see add_states
                         : scenario.calibration.memory.fragmentation +
                               train.fragmentation * std::min(usual_sample / model.tokens_per_sample, 1.0)),
      sharded_(scenario.plan.zero == 3),
      activations_on_host_(scenario.plan.offload.activations) {
  const ChunkPlacement placement(scenario.plan);
  for (int chunk = 0; chunk < placement.chunks(); ++chunk) {
    add_layers(scenario, train, model, chunks, placement.position(stage, chunk));
  }
  add_states(scenario, train);
  add_buffers(scenario, train);
}

/// The layers of one of the stage's chunks, the one with this number in the model.
void StageMemory::add_layers(const Scenario& scenario, const TrainWorkload& train, const Model& model,
                             const Chunks& chunks, int position) {
  const Plan& plan = scenario.plan;
  const Bytes weight = bytes_per_element(storage_precision(train.precision));
  const Bytes gradient = bytes_per_element(plan.sync.gradient_precision);
  int first = 0;
  for (int before = 0; before < position; ++before) {
    for (const LayerRun& run : chunks[static_cast<std::size_t>(before)]) first += run.count;
  }
  StageMemory::Chunk& chunk = chunks_.emplace_back();
  for (const LayerRun& run : chunks[static_cast<std::size_t>(position)]) {
    const Layer& layer = model.layers[static_cast<std::size_t>(run.group)].layer;
    StageMemory::Layers memory;
    memory.layer = &layer;
    memory.first = std::exchange(first, first + run.count);
    memory.count = run.count;
    const double stretch = layer.splittable ? train.activation_stretch : 1.0;
    memory.kept =
        layer.kept(train.recompute) * (train.recompute == Recompute::full && layer.recomputable ? 1.0 : stretch);
    if (splits_backward(plan.schedule)) memory.kept_for_weights = kept_for_weight_gradients(layer);
    const Bytes dropped = std::max(layer.kept() * stretch - memory.kept, Bytes(0.0));
    if (train.recompute != Recompute::none && layer.recomputable) memory.recomputed = dropped;
    memory.forward_temporaries = forward_temporaries(layer, train.recompute, dropped);
    memory.backward_temporaries = layer.workspace;
    if (scenario.cluster.node.gpu.processor) {
      memory.forward_temporaries += blocked_copies(layer);
      memory.backward_temporaries += blocked_copies(layer);
    }
    const double numbers = layer.held();
    if (layer.splittable) {
      waiting_ = std::max(waiting_, pending_stream_buffers(scenario, train, layer));
      memory.gathered = 2.0 * numbers * weight;
      if (sharded_ && shards_ > 1.0) memory.unscattered = layer.parameters * (weight + gradient);
      largest_ = std::max(largest_, numbers);
    } else {
      root_ += numbers * run.count;
      if (sharded_ && shards_ > 1.0) {
        memory.unscattered = layer.parameters * run.count * weight;
        root_scatter_ += layer.parameters * run.count * gradient;
      }
    }
    parameters_ += layer.parameters * run.count;
    in_experts_ += layer.expert_parameters * run.count;
    outside_matrices_ += (layer.parameters - layer.orthogonal()) * run.count;
    frozen_ += (numbers - layer.parameters) * run.count;
    frozen_weights_ += frozen_weight(layer, train) * (layer.frozen_parameters * run.count);
    chunk.kept += memory.kept * static_cast<double>(run.count) + layer.loss_kept;
    chunk.kept_for_weights += memory.kept_for_weights * static_cast<double>(run.count);
    chunk.forward_temporaries = std::max(chunk.forward_temporaries, memory.forward_temporaries);
    chunk.layers.push_back(memory);
  }
}

void StageMemory::add_states(const Scenario& scenario, const TrainWorkload& train) {
  const Plan& plan = scenario.plan;
  const ParameterBytes each = bytes_of_parameter(plan, train);
  const double own = parameters_of_shard(plan, parameters_, in_experts_);
  const auto kept = [&](bool divided) { return divided ? own : parameters_; };
  fixed_[MemoryPart::weights] = each.weight * kept(sharded_) + frozen_weights_ / (sharded_ ? shards_ : 1.0);
  fixed_[MemoryPart::gradients] = each.gradient * kept(divides_gradients(plan));
  // Stages of pipelines scatter after their last micro-batch and add up whole gradients until then
  // (torch.distributed.pipelining, stage.py: set_requires_gradient_sync(False); FSDP2: to_accumulated_grad_if_needed).
  if (sharded_ && shards_ > 1.0 && plan.pipeline > 1 && micro_batches(train, plan) > 1) {
    fixed_[MemoryPart::gradients] += each.gradient * parameters_;
  }
  fixed_[MemoryPart::optimizer] = (each.state + each.master) * kept(plan.zero >= 1);
  if (train.optimizer == Optimizer::muon && parameters_ > 0.0) {
    fixed_[MemoryPart::optimizer] += each.state * (kept(plan.zero >= 1) * (outside_matrices_ / parameters_));
  }
  if (servers_update(plan)) add_server(plan, train);
  const double updated = kept(plan.zero >= 1);
  fixed_[MemoryPart::gradients] += fp32 * std::min(plan.update_group, updated);
  // Updates tensor by tensor launch each operation for all of them (PyTorch, optim/adam.py, _multi_tensor_adam: a
  // square root of each second moment is there at a time).
  if (!train.code.fused_optimizer && optimizer_state(train) > Bytes(4.0))
    update_temporaries_ = each.state * (0.5 * updated);
  const auto to_host = [&](MemoryPart part) { host_ += std::exchange(fixed_[part], Bytes(0.0)); };
  if (plan.offload.optimizer) {
    update_temporaries_ = Bytes(0.0);
    to_host(MemoryPart::optimizer);
    to_host(MemoryPart::gradients);  // copied as they become ready, added up there
  }
  if (plan.offload.parameters) to_host(MemoryPart::weights);
  // A processor's tensors come from the C library's heap, which has no segments. There what is kept of a layer comes to
  // lie where weights were gathered, and the next layer's find no room as large (mallinfo2 of two ranks of FSDP: 166 MB
  // in use at most, of 291 MB).
  if (scenario.cluster.node.gpu.processor) {
    if (sharded_ && shards_ > 1.0) fixed_[MemoryPart::allocator] = each.weight * parameters_ + frozen_weights_;
    return;
  }
  fixed_[MemoryPart::allocator] = beyond_tensors(chunks_, plan, each, shards_);
}

void StageMemory::add_server(const Plan& plan, const TrainWorkload& train) {
  const Sync& sync = plan.sync;
  if (sync.placement != ServerPlacement::gpu && sync.placement != ServerPlacement::colocated) return;
  const double share = parameters_ / sync.servers;
  fixed_[MemoryPart::optimizer] += (fp32 + optimizer_state(train)) * share;
  fixed_[MemoryPart::communication] += bytes_per_element(sync.gradient_precision) * share;
}

void StageMemory::add_buffers(const Scenario& scenario, const TrainWorkload& train) {
  const Plan& plan = scenario.plan;
  const MemoryConstants& constants = scenario.calibration.memory;
  const Bytes weight = bytes_per_element(storage_precision(train.precision));
  const bool gathers = sharded_ && shards_ > 1.0;
  Bytes communication = fixed_[MemoryPart::communication];
  if (gathers || plan.offload.parameters) {
    root_gathered_ = weight * root_;
    if (!plan.reshard_after_forward) root_gathered_ = weight * (parameters_ + frozen_);
    // Gathers run on a stream of their own, whose memory no other stream uses: two blocks, or once the rest.
    if (gathers) communication = weight * std::max(2.0 * largest_, root_);
  }
  const bool streams = gathers || plan.offload.parameters;
  for (StageMemory::Chunk& chunk : chunks_) {
    for (StageMemory::Layers& run : chunk.layers) {
      if (run.layer->splittable) {
        run.gathered =
            std::max(run.gathered, weight * std::min(plan.gathered_parameters, parameters_ + frozen_ - root_));
      }
      if (!streams || !plan.reshard_after_forward) run.gathered = Bytes(0.0);
    }
  }
  // Buckets are parts of the gradients' own memory where nothing is copied and a rank has all of it; servers have none.
  const Bytes all = bytes_per_element(plan.sync.gradient_precision) * parameters_;
  const bool processor = scenario.cluster.node.gpu.processor.has_value();
  // On processors all buckets are counted (DistributedDataParallel keeps them all). On GPUs one is, with which the
  // other parts were compared to measurements.
  const Bytes bucket = processor ? all : std::min(plan.sync.bucket, all);
  const bool in_place = servers_update(plan) || (!plan.sync.separate_bucket_buffers && !divides_gradients(plan));
  const bool sums = plan.data * plan.context > 1 || plan.schedule == PipelineSchedule::dualpipe;
  if (processor && has_servers(plan.sync.algorithm)) {
    communication += all * 2.0;  // push and pull
  } else if (sums && plan.zero < 3 && !in_place) {
    communication += bucket;
  }
  if (plan.offload.optimizer) communication += bucket * 2.0;  // one is filled, one is copied
  std::vector<WeightMatrix> matrices;
  if (plan.sync.compression.needs_whole_gradient()) {
    for (const StageMemory::Chunk& chunk : chunks_) {
      for (const StageMemory::Layers& run : chunk.layers) {
        for (WeightMatrix matrix : run.layer->matrices) {
          matrix.count *= run.count;
          matrices.push_back(matrix);
        }
      }
    }
  }
  fixed_[MemoryPart::communication] = communication + compression_needs(plan, parameters_, matrices);
  outside_framework_ = 1.0_MiB * (constants.context_mib + constants.communicator_mib * communicators(plan));
  fixed_[MemoryPart::context] = outside_framework_ + train.reserved_memory;
}

MemoryParts StageMemory::update() const {
  MemoryParts parts = fixed_;
  parts[MemoryPart::temporaries] = update_temporaries_;
  return parts;
}

MemoryParts StageMemory::moment(const StageMemory::Layers& layer, Bytes activations) const {
  MemoryParts parts = fixed_;
  parts[MemoryPart::activations] = activations_on_host_ ? std::min(activations, layer.kept * 2.0) : activations;
  parts[MemoryPart::gathered] = root_gathered_ + layer.gathered;
  return parts;
}

void StageMemory::finish(MemoryParts& parts, Bytes stranded) const {
  using P = MemoryPart;
  const Bytes moving = parts[P::activations] + parts[P::recomputed] + parts[P::temporaries] + parts[P::loss];
  parts[P::allocator] += stranded + moving * fragmentation_ + waiting_;
}

void StageMemory::forward(int chunk, Bytes others, bool every_layer, const Emit& emit) const {
  const StageMemory::Chunk& work = chunks_[static_cast<std::size_t>(chunk)];
  for (const StageMemory::Layers& run : work.layers) {
    for (int i = every_layer ? 0 : run.count - 1; i < run.count; ++i) {
      MemoryParts parts = moment(run, others + run.kept * (i + 1.0));
      parts[MemoryPart::temporaries] = run.forward_temporaries;
      finish(parts, Bytes(0.0));
      emit(MemoryTimeline::Phase::forward, run, i, parts);
    }
    others += run.kept * static_cast<double>(run.count);
    if (!(run.layer->loss_buffers > Bytes(0.0))) continue;
    // The segments of the blocks' temporaries are free but too small for the logits.
    MemoryParts parts = moment(run, others);
    parts[MemoryPart::loss] = run.layer->loss_buffers;
    finish(parts, std::min(work.forward_temporaries, run.layer->loss_buffers));
    emit(MemoryTimeline::Phase::loss, run, run.count - 1, parts);
  }
}

void StageMemory::backward(int chunk, bool parted, Bytes others, bool every_layer, const Emit& emit) const {
  const StageMemory::Chunk& work = chunks_[static_cast<std::size_t>(chunk)];
  Bytes below;
  for (const StageMemory::Layers& run : work.layers) below += run.kept * static_cast<double>(run.count);
  Bytes above;    // kept by the layers that are done
  Bytes waiting;  // gradients of layers outside the blocks: scattered together, at the very end
  for (auto run = work.layers.rbegin(); run != work.layers.rend(); ++run) {
    const bool fills_up = parted && run->kept_for_weights > run->kept;
    const int last = every_layer || fills_up ? 0 : run->count - 1;
    const bool root = !run->layer->splittable;
    if (root) waiting += run->unscattered;
    for (int i = run->count - 1; i >= last; --i) {
      const double done = run->count - 1.0 - i;
      MemoryParts parts = moment(
          *run, others + below - run->kept * done + (parted ? above + run->kept_for_weights * done : Bytes(0.0)));
      parts[MemoryPart::temporaries] = run->backward_temporaries;
      parts[MemoryPart::recomputed] = run->recomputed;
      parts[MemoryPart::loss] = run->layer->loss_kept;
      parts[MemoryPart::communication] += waiting + (root ? Bytes(0.0) : run->unscattered);
      if (root && std::next(run) == work.layers.rend()) parts[MemoryPart::communication] += root_scatter_;
      finish(parts, Bytes(0.0));
      emit(MemoryTimeline::Phase::backward, *run, i, parts);
    }
    below -= run->kept * static_cast<double>(run->count);
    above += run->kept_for_weights * static_cast<double>(run->count);
  }
}

}  // namespace foretrain

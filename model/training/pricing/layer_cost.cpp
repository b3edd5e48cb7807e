#include "model/training/pricing/layer_cost.hpp"

#include <algorithm>

#include "model/base/number.hpp"
#include "model/base/spread.hpp"
#include "model/cost/power.hpp"
#include "model/parallelism/layout.hpp"
#include "model/parallelism/weight_gradients.hpp"

namespace foretrain {

namespace {

GroupKind group_of(LayerCollective::Group group) {
  switch (group) {
    case LayerCollective::Group::tensor:
      return GroupKind::tensor;
    case LayerCollective::Group::context:
      return GroupKind::context;
    case LayerCollective::Group::expert:
      return GroupKind::expert;
  }
  return GroupKind::tensor;
}

/// Its name in results.
std::string_view name_of(const LayerCollective& collective) {
  using enum CollectiveOperation;
  using enum LayerCollective::Group;
  if (collective.group == expert) return collective.combines ? "expert combine" : "expert dispatch";
  const bool of_context = collective.group == context;
  if (collective.operation == all_gather) return of_context ? "context-parallel gather" : "tensor-parallel gather";
  if (collective.operation == all_to_all) return "context-parallel all-to-all";
  if (collective.operation == reduce_scatter)
    return of_context ? "context-parallel scatter" : "tensor-parallel scatter";
  return of_context ? "context-parallel sum" : "tensor-parallel sum";
}

}  // namespace

LayerPassCost& LayerPassCost::operator+=(const LayerPassCost& other) {
  Inside::operator+=(other);
  kernels += other.kernels;
  dispatch += other.dispatch;
  gain += other.gain;
  return *this;
}

LayerPassCost operator*(LayerPassCost cost, double n) {
  return {Inside(cost) * n, cost.kernels * n, cost.dispatch * n, cost.gain * n};
}

TimeBreakdown LayerPassCost::time_breakdown() const {
  // Dispatch runs ahead of the device over a whole pass: what counts is which of the two takes longer in sum.
  TimeBreakdown pass{*this, kernels};
  pass.host += std::max(dispatch - (kernels + pass.communication()), Seconds(0.0));
  return pass;
}

LayerCost& LayerCost::operator+=(const LayerCost& other) {
  forward += other.forward;
  recompute += other.recompute;
  backward += other.backward;
  return *this;
}

LayerCost operator*(const LayerCost& cost, double n) {
  return {cost.forward * n, cost.recompute * n, cost.backward * n};
}

std::array<std::vector<Operator>, 3> operators_around_counts(const Layer& layer) {
  std::array<std::vector<Operator>, 3> parts;
  const auto is_of = [](LayerPart part) { return [part](const Operator& op) { return op.part == part; }; };
  const auto routed = std::find_if(layer.forward.rbegin(), layer.forward.rend(), is_of(LayerPart::router)).base();
  const auto experts = std::find_if(routed, layer.forward.end(), is_of(LayerPart::experts));
  const auto back = std::find_if_not(experts, layer.forward.end(), is_of(LayerPart::experts));
  parts[0].assign(routed, experts);
  parts[1].assign(experts, back);
  parts[2].assign(back, layer.forward.end());
  parts[2].insert(parts[2].end(), layer.forward.begin(), routed);
  return parts;
}

Seconds idle_behind_counts(const CountedPass& pass, Seconds exchanges, const HostConstants& constants) {
  const Seconds latency = launch_latency(constants);
  Seconds host, kernels, done = latency;
  for (std::size_t i = 0; i < pass.size(); ++i) {
    host += pass[i].host;
    kernels += pass[i].device;
    done = std::max(done + pass[i].device, host + latency);
    if (i + 1 < pass.size()) done += exchanges / 2.0;
  }
  return done + synchronize_time(constants) - std::max(host, kernels + exchanges);
}

int tensors_of(const Layer& layer) {
  std::int64_t matrices = 0;
  for (const WeightMatrix& matrix : layer.matrices) matrices += matrix.count;
  return static_cast<int>(std::max<std::int64_t>(2 * matrices, 1));
}

namespace {

/// Slowdown of kernels in a step against kernels alone: those that wait for each other in every step are as slow as the
/// slowest device.
double kernel_slowdown_of(const Scenario& scenario, const TrainWorkload& train) {
  const StepConstants& constants = scenario.calibration.step;
  const double own = constants.kernel_stretch * train.kernel_slowdown;
  if (!scenario.plan.sync.waits_for_slowest()) return own;
  return own * (1.0 + constants.device_spread * expected_largest(RankLayout(scenario.plan).gpus()));
}

/// Modules that hold weights: linear layers and the norms before them.
double modules_of(const Layer& layer) {
  const auto is_product = [](const Operator& op) { return std::holds_alternative<Matmul>(op.work); };
  return number(std::ranges::count_if(layer.forward, is_product)) + (layer.splittable ? 2.0 : 1.0);
}

}  // namespace

LayerPricer::LayerPricer(const Scenario& scenario, const TrainWorkload& train, Recipes recipes)
    : scenario_(scenario),
      train_(train),
      recipes_(recipes),
      slowdown_(kernel_slowdown_of(scenario, train)),
      framework_overhead_(framework_overhead(scenario.plan, scenario.cluster, train)),
      gpu_(gpu_in_step(scenario.cluster.node.gpu, scenario.calibration.step)) {}

RecipePointer LayerPricer::recipe(const std::vector<Operator>& ops) const {
  if (!keeps_recipes() || ops.empty()) return nullptr;
  return std::make_shared<const Recipe>(
      kernels_of(ops, scenario_.plan.execution, slowdown_, gpu_, scenario_.calibration));
}

std::vector<Operator> LayerPricer::backward_operators(const Layer& layer) const {
  std::vector<Operator> ops = layer.run_again(train_.recompute);
  ops.insert(ops.end(), layer.backward.begin(), layer.backward.end());
  const std::vector<Operator> sums = gradient_sums(layer);
  ops.insert(ops.end(), sums.begin(), sums.end());
  return ops;
}

/// Host time of eager code around each launch of layers that route tokens.
Seconds LayerPricer::around_launches(const Layer& layer) const {
  if (!layer.routes_tokens || scenario_.plan.execution != ExecutionMode::eager) return {};
  const HostConstants& host = scenario_.calibration.host;
  return Seconds(std::max(0.0, host.expert_dispatch_us - host.dispatch_us) * 1e-6);
}

LayerPassCost LayerPricer::cost_of(const std::vector<Operator>& ops, Seconds around_launch) const {
  const LaunchTotals totals =
      launch_totals(ops, scenario_.plan.execution, scenario_.plan.graphed_parts, gpu_, scenario_.calibration);
  Seconds device = totals.device;
  if (train_.memory_stretch != 1.0) device += (train_.memory_stretch - 1.0) * memory_bound(ops);
  const Seconds host = totals.host + around_launch * number(totals.kernels);
  // A process dispatches for each of its GPUs in turn (Python holds one lock).
  return {{}, device * slowdown_, host * gpus_of_process(scenario_.plan, scenario_.cluster)};
}

LayerPassCost LayerPricer::pass_cost(const std::vector<Operator>& ops, Seconds around_launch) const {
  const bool fills = train_.code.deterministic && scenario_.plan.execution != ExecutionMode::compiled;
  return fills ? cost_of(ops, around_launch) + cost_of({filling(ops)}) : cost_of(ops, around_launch);
}

/// Collectives are launched as kernels are. In eager layers with graphed parts, those of tensor ranks are nodes.
Seconds LayerPricer::dispatch(const std::vector<LayerCollective>& collectives, Seconds around_launch) const {
  int calls = 0;
  for (const LayerCollective& collective : collectives) {
    const bool own = collective.group == LayerCollective::Group::expert;
    if (own || scenario_.plan.graphed_parts == GraphedParts::none) calls += collective.count;
  }
  if (scenario_.plan.execution == ExecutionMode::cuda_graph) return {};
  const Seconds host = host_dispatch_time(calls, scenario_.plan.execution, scenario_.calibration.host);
  return (host + around_launch * number(calls)) * gpus_of_process(scenario_.plan, scenario_.cluster);
}

Seconds LayerPricer::memory_bound(const std::vector<Operator>& ops) const {
  std::vector<Operator> streaming;
  std::ranges::copy_if(ops, std::back_inserter(streaming),
                       [](const Operator& op) { return std::holds_alternative<Streaming>(op.work); });
  const Plan& plan = scenario_.plan;
  return launch_totals(streaming, plan.execution, plan.graphed_parts, gpu_, scenario_.calibration).device;
}

CountedPass LayerPricer::counted_pass(const Layer& layer) const {
  CountedPass pass;
  const std::array<std::vector<Operator>, 3> parts = operators_around_counts(layer);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const LayerPassCost cost = pass_cost(parts[i], around_launches(layer));
    pass[i] = {cost.dispatch, cost.kernels};
  }
  return pass;
}

/// FSDP2 gathers a layer's weights into one buffer and copies them out of it into the parameters before each pass, on
/// the stream of the layer's kernels (PyTorch, fsdp/_fully_shard/_fsdp_collectives.py, foreach_all_gather_copy_out).
/// FSDP1's parameters are views of the gathered buffer. What becomes of gradients: GradientSync::add_sharded_units.
std::vector<Operator> LayerPricer::weight_copies(const Layer& layer, bool backward) const {
  const Plan& plan = scenario_.plan;
  if (plan.zero != 3 || !plan.sync.separate_bucket_buffers || shards_of(plan) == 1) return {};
  if (backward && !plan.reshard_after_forward) return {};
  const Precision precision = storage_precision(train_.precision);
  const Bytes weights = bytes_per_element(precision) * layer.held();
  return {
      {"gathered weights", Streaming{StreamingKind::elementwise, weights, weights, Flops(0.0), false}, precision, 1}};
}

/// Kernels that add up the gradients of a step's micro-batches, as the mean of their passes. Gradients have the format
/// of the parameters that they are of; where what is sent is longer, sums are kept beside them in that format
/// (Megatron-Core, distributed_data_parallel.py: main_grad.add_; DeepSpeed, bf16_optimizer.py, update_hp_grads;
/// nanotron, gradient_accumulator.py). Else the first gradient is the sum, and later ones are added to it (PyTorch,
/// csrc/autograd/functions/accumulate_grad.h). Clipped ones are read for their norm, in fp16 for infinities, too, and
/// rewritten before (NVIDIA DeepLearningExamples, TensorFlow/LanguageModeling/BERT/optimization.py).
std::vector<Operator> LayerPricer::gradient_sums(const Layer& layer) const {
  const Plan& plan = scenario_.plan;
  const int passes = micro_batches(train_, plan);
  using enum Sync::Accumulation;
  if (plan.sync.accumulation == fused || passes == 1 || !(layer.parameters > 0.0)) return {};
  const bool of_fp32 = train_.code.cache_cast_weights || plan.zero == 3;
  const Precision format = of_fp32 ? Precision::fp32 : storage_precision(train_.precision);
  const Bytes own = bytes_per_element(format), sum = std::max(own, bytes_per_element(plan.sync.gradient_precision));
  const bool clips = plan.sync.accumulation == clipped;
  const double later = 1.0 - 1.0 / passes, written = own < sum || clips ? 1.0 : later;
  const double looks = clips ? train_.precision == Precision::fp16 ? 3.0 : 2.0 : 0.0;
  const double elements =
      divides_gradients(plan) ? parameters_of_shard(plan, layer.parameters, layer.expert_parameters) : layer.parameters;
  const Streaming work{StreamingKind::elementwise, elements * (own * (written + looks) + sum * later),
                       elements * (sum * written + own * (clips ? 1.0 : 0.0)), Flops(elements), false};
  const int kernels = tensors_of(layer) * (1 + static_cast<int>(looks));
  return {{"gradient accumulation", work, format, kernels}};
}

LayerCost LayerPricer::price(const Layer& layer) const {
  return with_recomputation(without_recomputation(layer), layer);
}

LayerCost LayerPricer::without_recomputation(const Layer& layer) const {
  const Seconds around = around_launches(layer);
  LayerCost cost{pass_cost(layer.forward, around), {}, pass_cost(layer.backward, around)};
  cost.forward.dispatch += dispatch(layer.forward_collectives, around);
  cost.backward.dispatch += dispatch(layer.backward_collectives, around);
  if (chunks_products()) {
    add_chunks(layer.forward, false, cost.forward);
    add_chunks(layer.backward, true, cost.backward);
  }
  if (layer.reads_counts && scenario_.plan.execution == ExecutionMode::eager) cost.counted = counted_pass(layer);
  const Seconds hooks = train_.module_dispatch * modules_of(layer);
  cost.forward.dispatch += hooks;
  cost.backward.dispatch += hooks;
  if (layer.splittable) {
    cost.backward.kernels += train_.layer_overhead;
    cost.forward.dispatch += framework_overhead_;
    cost.backward.dispatch += framework_overhead_;
  }
  cost.forward.kernels += kernels(weight_copies(layer, false));
  cost.backward.kernels += kernels(weight_copies(layer, true));
  const LayerPassCost sums = cost_of(gradient_sums(layer));
  cost.backward.kernels += sums.kernels;
  cost.backward.dispatch += sums.dispatch;
  return cost;
}

LayerCost LayerPricer::with_recomputation(LayerCost cost, const Layer& layer) const {
  const std::vector<Operator>& again = layer.run_again(train_.recompute);
  if (&again != &layer.forward) {
    cost.recompute = pass_cost(again, around_launches(layer));
    return cost;
  }
  cost.recompute = cost.forward;
  cost.counted_again = cost.counted.has_value();
  if (train_.recompute_early_stop) {
    const std::vector<Operator> tail(layer.forward.end() - static_cast<std::ptrdiff_t>(layer.unread_tail),
                                     layer.forward.end());
    const LayerPassCost spared = pass_cost(tail, around_launches(layer));
    cost.recompute.kernels -= spared.kernels;
    cost.recompute.dispatch -= spared.dispatch;
  }
  return cost;
}

Seconds LayerPricer::chunked_kernels(const std::vector<Operator>& products) const {
  return kernels(chunk_of(products, scenario_.plan.tensor)) * scenario_.plan.tensor;
}

/// Adds launches and time of GEMMs in chunks.
void LayerPricer::add_chunks(const std::vector<Operator>& pass, bool backward, LayerPassCost& cost) const {
  const OverlappedProducts overlapped = overlapped_products(pass, backward);
  for (const auto* products_of : {&overlapped.gathers, &overlapped.scatters}) {
    if (backward && products_of == &overlapped.scatters) continue;  // these hide behind whole products
    for (const std::vector<Operator>& products : *products_of) {
      cost.kernels += chunked_kernels(products) - kernels(products);
      cost.dispatch += dispatch(products) * (scenario_.plan.tensor - 1.0);
    }
  }
}

/// The products that each of these collectives is hidden by, in their order; none: it lies between kernels.
std::span<const std::vector<Operator>> LayerPricer::hiding_products(const LayerCollective& collective,
                                                                    const OverlappedProducts& overlapped,
                                                                    const std::vector<Operator>& pass,
                                                                    bool backward) const {
  using enum CollectiveOperation;
  if (collective.group != LayerCollective::Group::tensor) return {};
  if (collective.again) return overlapped.again;
  if (!chunks_products()) return {};
  if (collective.operation == all_gather) return overlapped.gathers;
  // Backward, weights' gradients hide it, if these are not put off.
  const bool hides =
      collective.operation == reduce_scatter && (!backward || std::ranges::any_of(pass, is_weight_gradient));
  return hides ? std::span(overlapped.scatters) : std::span<const std::vector<Operator>>();
}

/// `of_pass`: its kernels.
PassCalls LayerPricer::pass_calls(const std::vector<LayerCollective>& collectives, const std::vector<Operator>& pass,
                                  bool backward, Seconds of_pass, int stage, TransferTable& transfers) const {
  const Plan& plan = scenario_.plan;
  const bool hides = chunks_products() || std::ranges::any_of(collectives, &LayerCollective::again);
  const OverlappedProducts overlapped =
      plan.sequence_parallel && hides ? overlapped_products(pass, backward) : OverlappedProducts{};
  // A ring's next keys and values travel while those before are attended to.
  const auto attention_share = [&] {
    std::vector<Operator> attention;
    std::ranges::copy_if(pass, std::back_inserter(attention),
                         [](const Operator& op) { return std::holds_alternative<Attention>(op.work); });
    return kernels(attention) / kernels(pass) * (1.0 - 1.0 / plan.context);
  };
  PassCalls calls;
  for (const LayerCollective& collective : collectives) {
    const bool of_ring =
        collective.group == LayerCollective::Group::context && plan.context_method == ContextMethod::ring;
    const bool of_tokens = collective.group == LayerCollective::Group::expert;
    const bool hidden = of_tokens && hides_exchanges(plan);
    CollectiveCall call;
    call.operation = collective.operation;
    call.size = collective.size;
    call.by_messages = of_ring;
    if (of_ring) calls.hiding = attention_share();
    if (of_tokens) call.tokens = {plan.expert_dispatch, collective.copies, collective.imbalance};
    const int transfer = transfers.collective(stage, group_of(collective.group), call, 1.0, inside_layers, nullptr);
    calls.all.push_back({name_of(collective), transfer, collective.count});
    const std::span<const std::vector<Operator>> products = hiding_products(collective, overlapped, pass, backward);
    const bool whole = backward && (collective.again || collective.operation == CollectiveOperation::reduce_scatter);
    for (int i = 0; i < collective.count; ++i) {
      if (at_index(i) < products.size()) {
        const std::vector<Operator>& own = products[at_index(i)];
        const Seconds hiding = whole ? kernels(own) : chunked_kernels(own) * (1.0 - 1.0 / plan.tensor);
        calls.behind.push_back({transfer, hiding / of_pass});
      } else {
        (of_ring ? calls.beside : hidden ? calls.exchanges : calls.between).push_back(transfer);
      }
    }
  }
  return calls;
}

LayerCalls LayerPricer::calls(const Layer& layer, const LayerCost& cost, int stage, TransferTable& transfers) const {
  LayerCalls calls{
      pass_calls(layer.forward_collectives, layer.forward, false, cost.forward.kernels, stage, transfers),
      {},
      pass_calls(layer.backward_collectives, layer.backward, true, cost.backward.kernels, stage, transfers)};
  if (&layer.run_again(train_.recompute) == &layer.forward) calls.recompute = calls.forward;
  return calls;
}

Seconds LayerPricer::cold_cache_penalty(const PassCalls& calls, double speed) const {
  if (!gpu_.processor) return Seconds(0.0);
  const double waits = number(calls.between.size()) + number(calls.beside.size()) * (scenario_.plan.context - 1);
  return gpu_.processor->after_wait * waits / (gpu_.processor->share * speed);
}

LayerCost LayerPricer::on_class(LayerCost cost, const LayerCalls& calls, double speed, int rank_class,
                                const TransferTable& transfers) const {
  const auto total = [&](const std::vector<int>& of_kind) {
    Seconds time;
    for (const int transfer : of_kind) time += transfers.time(transfer, rank_class);
    return time;
  };
  // Concurrent communication hides behind kernels, but slows them down.
  const auto hide = [&](const PassCalls& of_pass, LayerPassCost& pass) {
    pass.kernels /= speed;
    OverlapCost beside(transfers, rank_class), exchanges(transfers, rank_class);
    for (const int transfer : of_pass.beside) beside.add(transfer);
    for (const int transfer : of_pass.exchanges) exchanges.add(transfer);
    const double share = of_pass.share_beside(), others = of_pass.share_of_exchanges();
    const Seconds slowed = exchanges.cost(pass.kernels * others);
    Seconds longer = beside.cost(pass.kernels * share) + slowed;
    for (const auto& [transfer, own] : of_pass.behind) {
      longer += std::min(transfers.time(transfer, rank_class), pass.kernels * own) * transfers.slowdown(transfer);
    }
    pass.kernels += longer + cold_cache_penalty(of_pass, speed);
    pass.exposed = total(of_pass.between);
    const auto run_beside = [&](Seconds time, Seconds hiding) {
      pass.hidden += std::min(time, hiding);
      pass.exposed += std::max(time - hiding, Seconds(0.0));
    };
    run_beside(beside.time(), pass.kernels * share);
    run_beside(exchanges.time(), pass.kernels * others);
    pass.gain = std::min(exchanges.time(), pass.kernels * others) - slowed;
    for (const auto& [transfer, own] : of_pass.behind)
      run_beside(transfers.time(transfer, rank_class), pass.kernels * own);
  };
  hide(calls.forward, cost.forward);
  hide(calls.recompute, cost.recompute);
  // Another micro-batch's kernels fill the queue where they hide the exchanges.
  if (cost.counted && !hides_exchanges(scenario_.plan)) {
    for (LaunchTotals& part : *cost.counted) part.device /= speed;
    cost.forward.host = idle_behind_counts(*cost.counted, cost.forward.exposed, scenario_.calibration.host);
    if (cost.counted_again) cost.recompute.host = cost.forward.host;
  }
  hide(calls.backward, cost.backward);
  return cost;
}

}  // namespace foretrain

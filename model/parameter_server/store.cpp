#include "model/parameter_server/store.hpp"

#include <algorithm>
#include <utility>

#include "model/base/number.hpp"
#include "model/base/spread.hpp"
#include "model/collectives/placement.hpp"
#include "model/cost/compression.hpp"
#include "model/cost/operator_cost.hpp"
#include "model/memory/memory.hpp"
#include "model/training/pricing/layer_cost.hpp"

namespace foretrain {

namespace {

/// Which group each piece of a key, and each layer's passes, belong to.
struct Grouping {
  int groups = 0;
  std::vector<int> of_piece;
  std::vector<int> of_layer;  ///< the group of a layer's last piece
};

/// The model's layers, one by one.
struct LayerTable {
  std::vector<LayerCost> costs;
  std::vector<double> parameters, parameter_shares, compute_shares;  ///< shares: of the whole model
};

/// Neighbouring layers share a group until it holds `limit` of the model: half by parameters and half by compute, so
/// that no group is a large share of either. A layer with more parameters than that is several groups.
Grouping group_pieces(const LayerTable& layers, const std::vector<KeyPiece>& pieces, double limit) {
  const std::vector<double>& parameter_shares = layers.parameter_shares;
  Grouping grouping;
  grouping.of_layer.resize(parameter_shares.size());
  std::size_t piece = 0;
  double open = 0.0;
  bool any_open = false;
  const auto close = [&] {
    grouping.groups += any_open ? 1 : 0;
    any_open = false;
    open = 0.0;
  };
  for (std::size_t layer = 0; layer < parameter_shares.size(); ++layer) {
    const std::size_t first = piece;
    while (piece < pieces.size() && pieces[piece].layer == static_cast<int>(layer)) ++piece;
    const std::size_t count = piece - first;
    int parts = 1;
    if (parameter_shares[layer] > limit && count > 1) {
      close();
      parts = static_cast<int>(std::min(parameter_shares[layer] / limit + 1.0, static_cast<double>(count)));
    }
    for (std::size_t i = 0; i < count; ++i) {
      grouping.of_piece.push_back(grouping.groups + static_cast<int>(i * at_index(parts) / count));
    }
    grouping.of_layer[layer] = grouping.groups + parts - 1;
    any_open = true;
    open += 0.5 * (parameter_shares[layer] + layers.compute_shares[layer]);
    grouping.groups += parts - 1;
    if (parts > 1 || open >= limit) close();
  }
  close();
  return grouping;
}

/// Adds a variable's remote calls; nothing for transports whose cards read and write the memory of either side.
void add_calls(const Scenario& scenario, const ParameterStore& store, double parameters, ParameterStore::Calls& calls) {
  const std::optional<Transport>& transport = scenario.cluster.network.transport;
  const bool remote = scenario.cluster.nodes > 1 && transport && transport->protocol == Protocol::tcp;
  if (!remote || !(parameters > 0.0)) return;
  const HostConstants& host = scenario.calibration.host;
  const auto of_one = [&](Bytes bytes) {
    return bytes / BytesPerSecond(host.pageable_copy_gbps * 1e9) + Seconds(host.call_us * 1e-6);
  };
  const Seconds push = of_one(store.gradient * parameters);
  calls.push += push;
  calls.pull += of_one(store.weight * parameters);
  calls.lock = std::max(calls.lock, push);
}

/// Time of a server to apply one update to `parameters` of its keys. It reads gradient, fp32 weight and states, and
/// writes these and a 2-byte copy of the weight for the workers. A GPU also adds up there what its workers sent, in one
/// pass over all (TensorFlow's AddN, MXNet's ElementwiseSum); on a host that is part of receiving it.
Seconds update_time(const Scenario& scenario, const TrainWorkload& train, const Topology& topology,
                    const ParameterStore& store, double parameters, int server) {
  if (!(parameters > 0.0)) return Seconds(0.0);
  const Bytes kept = Bytes(4.0) + optimizer_state(train), read = store.gradient + kept,
              written = kept + (store.weight < Bytes(4.0) ? store.weight : Bytes(0.0));
  const EndpointId place = store.pull_from[at_index(server)];
  if (!topology.is_gpu(place)) {
    // Servers on one socket share its memory.
    const auto servers = static_cast<double>(std::ranges::count(store.pull_from, place));
    return (read + written) * parameters / (topology.summing_traffic_rate() / servers);
  }
  const bool sums = store.consistency == Sync::Consistency::synchronous;
  const Bytes sum = store.gradient * (sums ? parameters : 0.0), pushed = sum * store.worker_count();
  const Operator update{"update",
                        Streaming{StreamingKind::optimizer, read * parameters + pushed, written * parameters + sum,
                                  Flops(10.0 * parameters), false},
                        Precision::fp32, 1};
  return operator_cost(update, scenario.cluster.node.gpu, scenario.calibration).device;
}

void place(const Scenario& scenario, const Topology& topology, ParameterStore& store) {
  const Sync& sync = scenario.plan.sync;
  std::vector<int> ranks;
  for (int rank = 0; rank < scenario.plan.data; ++rank) {
    if (!sync.local_reduce || rank % topology.gpus_per_node() == 0) store.workers.emplace_back();
    store.workers.back().push_back(rank);
    ranks.push_back(rank);
  }
  CollectiveCall call;
  call.servers = sync.servers;
  call.placement = sync.placement;
  call.groups = {ranks};
  store.push_to = server_endpoints(call, ranks, topology);
  for (const EndpointId endpoint : store.push_to) store.pull_from.push_back(topology.host_of_server(endpoint));
  // Updates that are applied one by one are not added up first.
  if (store.consistency != Sync::Consistency::synchronous) store.push_to = store.pull_from;
}

LayerTable layer_table(const Model& model, const LayerPricer& pricer) {
  LayerTable layers;
  LayerCost all;
  double all_parameters = 0.0;
  for (const LayerGroup& group : model.layers) {
    const LayerCost cost = pricer.price(group.layer);
    for (int i = 0; i < group.repeat; ++i) {
      layers.parameters.push_back(group.layer.parameters);
      layers.costs.push_back(cost);
      all += cost;
      all_parameters += group.layer.parameters;
    }
  }
  const Seconds compute = all.both_ways();
  for (std::size_t layer = 0; layer < layers.costs.size(); ++layer) {
    layers.parameter_shares.push_back(all_parameters > 0.0 ? layers.parameters[layer] / all_parameters : 0.0);
    const Seconds own = layers.costs[layer].both_ways();
    layers.compute_shares.push_back(compute > Seconds(0.0) ? own / compute : 0.0);
  }
  return layers;
}

/// The groups' passes, before it is known what their servers do.
void add_passes_of_groups(const LayerTable& layers, const std::vector<KeyPiece>& pieces, const Grouping& grouping,
                          const LayerPricer& pricer, const Sync& sync, ParameterStore& store) {
  std::vector<LayerCost> costs(at_index(grouping.groups));
  for (std::size_t layer = 0; layer < layers.costs.size(); ++layer) {
    costs[at_index(grouping.of_layer[layer])] += layers.costs[layer];
  }
  std::vector<double> elements(costs.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) elements[at_index(grouping.of_piece[i])] += pieces[i].parameters;
  for (std::size_t g = 0; g < costs.size(); ++g) {
    // Casting before the push; the servers widen what they receive while adding it up.
    const CompressionWork casts =
        compression_work(sync.compression, {elements[g], {}}, sync.gradient_precision, store.worker_count());
    LayerCost& cost = costs[g];
    for (const CompressedMessage& message : casts.messages) cost.backward.kernels += pricer.kernels(message.kernels);
    ParameterStore::KeyGroup& group = store.groups.emplace_back();
    group.forward = cost.forward.time_breakdown();
    group.backward = cost.whole_backward().time_breakdown();
    group.parameters.resize(store.push_to.size());
    group.calls.resize(store.push_to.size());
  }
}

void add_groups(const Scenario& scenario, const TrainWorkload& train, const Model& model, const Topology& topology,
                ParameterStore& store) {
  const LayerPricer pricer(scenario, train);
  const LayerTable layers = layer_table(model, pricer);
  const Sync& sync = scenario.plan.sync;
  const std::vector<KeyPiece> pieces = cut_keys(layers.parameters, store.gradient, sync.split);
  const std::vector<int> server_of_piece = assign_keys(pieces, store.server_count(), sync.assignment);
  store.imbalance = load_imbalance(pieces, server_of_piece, store.server_count());
  double limit = 1.0 / ParameterStore::most_groups;
  Grouping grouping = group_pieces(layers, pieces, limit);
  while (grouping.groups > ParameterStore::most_groups) grouping = group_pieces(layers, pieces, limit *= 1.1);
  add_passes_of_groups(layers, pieces, grouping, pricer, sync, store);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::size_t group = at_index(grouping.of_piece[i]), server = at_index(server_of_piece[i]);
    store.groups[group].parameters[server] += pieces[i].parameters;
    add_calls(scenario, store, pieces[i].parameters, store.groups[group].calls[server]);
  }
  for (ParameterStore::KeyGroup& group : store.groups) {
    for (int s = 0; s < store.server_count(); ++s) {
      group.update.push_back(update_time(scenario, train, topology, store, group.parameters[at_index(s)], s));
    }
  }
}

/// All keys of a server are one message: nothing is pulled before everything is pushed.
void join_groups(ParameterStore& store) {
  ParameterStore::KeyGroup all = store.groups.front();
  for (std::size_t g = 1; g < store.groups.size(); ++g) {
    const ParameterStore::KeyGroup& group = store.groups[g];
    all.forward += group.forward;
    all.backward += group.backward;
    for (std::size_t s = 0; s < group.parameters.size(); ++s) {
      all.parameters[s] += group.parameters[s];
      all.update[s] += group.update[s];
      all.calls[s].push += group.calls[s].push;
      all.calls[s].pull += group.calls[s].pull;
      all.calls[s].lock = std::max(all.calls[s].lock, group.calls[s].lock);
    }
  }
  store.groups = {std::move(all)};
}

/// On a processor, what a process copies beside the messages: it joins its gradients into one tensor and spreads the
/// weights that it has pulled. A server that answers one worker at a time makes a copy of its weights for each.
void add_copies(const Scenario& scenario, ParameterStore& store) {
  const Gpu& device = scenario.cluster.node.gpu;
  if (!device.processor) return;
  const auto copy = [&](StreamingKind kind, double parameters) {
    const Bytes size = parameters * bytes_per_element(Precision::fp32);
    const Operator op{"copy", Streaming{kind, size, size, Flops(0.0), false}, Precision::fp32, 1};
    return operator_cost(op, device, scenario.calibration).device;
  };
  double all = 0.0;
  for (const ParameterStore::KeyGroup& group : store.groups) {
    for (const double parameters : group.parameters) all += parameters;
  }
  store.groups.front().backward.compute += copy(StreamingKind::elementwise, all);
  store.groups.front().forward.compute += copy(StreamingKind::optimizer, all);  // into what is there
  if (!store.one_push_at_a_time) return;
  ParameterStore::KeyGroup& group = store.groups.front();
  for (std::size_t s = 0; s < group.update.size(); ++s) {
    group.update[s] += copy(StreamingKind::elementwise, group.parameters[s]);
  }
}

/// Inside every machine: gradients are added up before the push, weights spread after the pull; each GPU exchanges its
/// share with the servers, so that all cards work.
void add_local_collectives(const Scenario& scenario, const Topology& topology, ParameterStore& store) {
  if (store.workers.front().size() < 2) return;
  for (const ParameterStore::KeyGroup& group : store.groups) {
    double parameters = 0.0;
    for (const double p : group.parameters) parameters += p;
    CollectiveCall call;
    call.groups = store.workers;
    call.operation = CollectiveOperation::reduce_scatter;
    call.size = store.gradient * parameters;
    store.reduce.push_back(lower(call, topology, scenario.calibration));
    call.operation = CollectiveOperation::all_gather;
    call.size = store.weight * parameters;
    store.gather.push_back(lower(call, topology, scenario.calibration));
  }
}

}  // namespace

TimeBreakdown ParameterStore::compute() const {
  TimeBreakdown sum = between;
  for (const ParameterStore::KeyGroup& group : groups) {
    sum += group.forward;
    sum += group.backward;
  }
  return sum;
}

double ParameterStore::factor(int worker, int iteration) const {
  return mean_factor(worker) * compute_factor(worker, iteration, compute_spread);
}

double ParameterStore::mean_factor(int worker) const {
  return worker >= worker_count() - slow.count ? slow.factor : 1.0;
}

ParameterStore ParameterStore::with_fastest_workers(int iterations) const {
  double fastest = factor(0, 0);
  for (int worker = 0; worker < worker_count(); ++worker) {
    for (int i = 0; i < iterations; ++i) fastest = std::min(fastest, factor(worker, i));
  }
  ParameterStore equal = *this;
  equal.compute_spread = 0.0;
  equal.slow = {worker_count(), fastest};
  return equal;
}

ParameterStore ParameterStore::with_slow_workers_last() const {
  ParameterStore last = *this;
  if (slow.count == 0) return last;
  last.pushed_before = std::max(0, worker_count() - slow.count);
  last.slow.count = worker_count();
  return last;
}

std::vector<Flow> ParameterStore::messages(std::span<const int> of_workers, int group, int server, bool push) const {
  const EndpointId place = (push ? push_to : pull_from)[at_index(server)];
  std::vector<Flow> flows;
  for (const int worker : of_workers) {
    if (push && worker < pushed_before) continue;
    const std::vector<int>& gpus = workers[at_index(worker)];
    const double parameters = groups[at_index(group)].parameters[at_index(server)] / number(gpus.size());
    const Bytes bytes = (push ? gradient : weight) * parameters;
    for (const int gpu : gpus) {
      if (gpu != place) flows.push_back({push ? gpu : place, push ? place : gpu, bytes});
    }
  }
  return flows;
}

bool uses_store(const Scenario& scenario) {
  return std::holds_alternative<TrainWorkload>(scenario.workload) && servers_update(scenario.plan);
}

ParameterStore build_store(const Scenario& scenario, const TrainWorkload& train, const Model& model,
                           const Topology& topology, const Step& step) {
  const Sync& sync = scenario.plan.sync;
  ParameterStore store;
  store.consistency = sync.consistency;
  store.staleness = sync.staleness;
  if (sync.consistency == Sync::Consistency::bounded) {
    if (sync.staleness == 0) store.consistency = Sync::Consistency::synchronous;
    if (sync.staleness > Sync::most_lead) store.consistency = Sync::Consistency::asynchronous;
  }
  store.one_push_at_a_time = scenario.cluster.node.gpu.processor && store.consistency != Sync::Consistency::synchronous;
  store.overlap = sync.overlap;
  store.barrier = sync.barrier;
  store.first_layer_first = sync.priority == Sync::Priority::first_layer;
  store.gradient = cast_bytes(sync.compression, sync.gradient_precision);
  store.weight = bytes_per_element(sync.parameter_precision.value_or(storage_precision(train.precision)));
  store.compute_spread = train.compute_spread;
  store.slow = sync.slow_workers;
  store.background = scenario.background;
  place(scenario, topology, store);
  add_groups(scenario, train, model, topology, store);
  if (store.one_push_at_a_time) join_groups(store);
  add_local_collectives(scenario, topology, store);
  store.between = store.compute() * (step.micro_batches - 1.0);  // of one micro-batch, so far
  add_copies(scenario, store);
  store.host_between_steps = step.once_per_step;
  return store;
}

}  // namespace foretrain

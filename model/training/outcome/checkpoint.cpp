#include "model/training/outcome/checkpoint.hpp"

#include <algorithm>
#include <vector>

#include "model/base/number.hpp"
#include "model/collectives/contention.hpp"
#include "model/collectives/library.hpp"
#include "model/cost/storage.hpp"
#include "model/memory/stage_memory.hpp"
#include "model/parallelism/layout.hpp"

namespace foretrain {

namespace {

// Request size of a writer or reader; larger requests are no faster.
constexpr Bytes written_block(16.0 * 1048576.0);

/// For each parameter: on the GPU, and in all.
struct StateBytes {
  Bytes on_gpu, all;
};
StateBytes state_bytes(const TrainWorkload& train, const Plan& plan) {
  // FSDP's shards are the fp32 weights themselves.
  const bool fp32_shards = plan.zero == 3 && train.master_weights;
  const Bytes weights = bytes_per_element(fp32_shards ? Precision::fp32 : storage_precision(train.precision));
  const Bytes master = train.master_weights && !fp32_shards ? bytes_per_element(Precision::fp32) : Bytes(0.0);
  const Bytes states = optimizer_state(train) + master;
  StateBytes bytes{Bytes(0.0), weights + states};
  if (!plan.offload.parameters) bytes.on_gpu += weights;
  if (!plan.offload.optimizer) bytes.on_gpu += states;
  return bytes;
}

/// Every machine sends what it has to the one behind it, the last one to the first.
Seconds to_next_machine(const std::vector<Bytes>& of_machine, const Topology& topology, const Scenario& scenario) {
  std::vector<int> machines;
  for (int node = 0; node < topology.nodes(); ++node) {
    if (of_machine[at_index(node)] > Bytes(0.0)) machines.push_back(node);
  }
  if (machines.size() < 2) return Seconds(0.0);
  LoweredCollective::Phase phase;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const EndpointId from = topology.host(machines[i], 0);
    const EndpointId to = topology.host(machines[(i + 1) % machines.size()], 0);
    phase.flows.push_back({from, to, of_machine[at_index(machines[i])]});
    phase.latency = std::max(phase.latency, topology.route(from, to).latency);
  }
  return uncontended_time({"to the next machine", {std::move(phase)}}, topology, scenario.background);
}

/// Each replica has read its share of what all of them hold: weights, unless they are sharded, and states likewise.
Seconds gathering(const Scenario& scenario, const TrainWorkload& train, const std::vector<double>& saved,
                  const Topology& topology) {
  const Plan& plan = scenario.plan;
  if (plan.zero == 3 || replicas_of(plan) == 1) return Seconds(0.0);
  const Bytes weights = bytes_per_element(storage_precision(train.precision));
  const Bytes held = plan.zero == 0 ? state_bytes(train, plan).all : weights;
  CollectiveCall call;
  call.operation = CollectiveOperation::all_gather;
  call.size = held * (*std::ranges::max_element(saved) * replicas_of(plan));
  call.groups = RankLayout(plan, scenario.cluster).groups(GroupKind::gradients, 0);
  return automatic_time(call, topology, scenario.calibration);
}

}  // namespace

Bytes checkpoint_state(const TrainWorkload& train, const Plan& plan, double parameters) {
  return state_bytes(train, plan).all * parameters;
}

Seconds storage_time(Storage storage, Bytes per_machine, int machines, int requests, bool write) {
  storage.clients = std::max(storage.clients, machines);
  DiskPattern pattern;
  pattern.order = AccessOrder::sequential;
  pattern.write = write;
  pattern.direct = true;
  pattern.block = written_block;
  pattern.queue_depth = requests;
  return per_machine / disk_cost(storage, pattern).bandwidth;
}

CheckpointCost checkpoint_cost(const Scenario& scenario, const TrainWorkload& train, const Step& step,
                               const Topology& topology) {
  const auto [on_gpu, all] = state_bytes(train, scenario.plan);
  const std::vector<int> stage_of_gpu = RankLayout(scenario.plan, scenario.cluster).stage_of_gpu();
  std::vector<double> saved(at_index(scenario.plan.pipeline));  // parameters by stage
  for (const Step::RankClass& rank_class : step.rank_classes)
    saved[at_index(rank_class.stage)] = rank_class.saved_parameters;
  std::vector<Bytes> of_machine(at_index(topology.nodes()));
  CheckpointCost cost;
  LoweredCollective::Phase copy;
  for (int gpu = 0; gpu < static_cast<int>(stage_of_gpu.size()); ++gpu) {
    const int stage = stage_of_gpu[at_index(gpu)];
    if (stage < 0) continue;
    const double parameters = saved[at_index(stage)];
    of_machine[at_index(topology.node_of(gpu))] += all * parameters;
    cost.state += all * parameters;
    if (!(on_gpu * parameters > Bytes(0.0))) continue;
    const EndpointId host = topology.host_of_gpu(gpu);
    copy.flows.push_back({gpu, host, on_gpu * parameters});
    copy.latency = std::max(copy.latency, topology.route(gpu, host).latency);
  }
  cost.per_machine = *std::ranges::max_element(of_machine);
  cost.copy = {"copy", {std::move(copy)}};
  cost.copy_time = uncontended_time(cost.copy, topology, scenario.background);

  if (train.checkpoint->mode == Checkpoint::Mode::in_memory) {
    cost.write = cost.fetch = to_next_machine(of_machine, topology, scenario);
  } else {
    const auto idle = static_cast<int>(std::ranges::count(of_machine, Bytes(0.0)));
    const auto time = [&](bool write) {
      return storage_time(train.checkpoint->storage, cost.per_machine, topology.nodes() - idle,
                          topology.gpus_per_node(), write);
    };
    cost.write = time(true);
    if (train.recovery) cost.read = time(false);
  }
  if (train.recovery) {
    cost.spread = cost.copy_time + gathering(scenario, train, saved, topology);
  }
  return cost;
}

CheckpointedStep checkpointed_step(const Checkpoint& checkpoint, const CheckpointCost& cost, Seconds step,
                                   const CheckpointedStep::Times& beside) {
  const double every = checkpoint.every;
  CheckpointedStep result{step + (beside.with_copy - beside.plain), {}};
  const bool waits = checkpoint.mode == Checkpoint::Mode::synchronous;
  if (waits) result.step += cost.write;
  result.mean = step + (result.step - step) / every;
  // The next copy overwrites the host's buffers, which must have been written by then.
  if (!waits) {
    result.mean += std::min(cost.write / every, step * beside.write) * (1.0 - 1.0 / beside.write);
    result.mean = std::max(result.mean, cost.write / every);
  }
  return result;
}

}  // namespace foretrain

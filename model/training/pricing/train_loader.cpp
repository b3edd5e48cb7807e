#include "model/training/pricing/train_loader.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "model/base/number.hpp"
#include "model/collectives/contention.hpp"
#include "model/parallelism/layout.hpp"

namespace foretrain {

LoweredCollective copies_to_devices(Bytes size, const Topology& topology, std::span<const int> gpus) {
  LoweredCollective::Phase phase;
  for (const int gpu : gpus) {
    const EndpointId host = topology.host_of_gpu(gpu);
    phase.flows.push_back({host, topology.gpu(gpu), size});
    phase.latency = std::max(phase.latency, topology.route(host, topology.gpu(gpu)).latency);
  }
  return {"copy", {std::move(phase)}};
}

LoaderUse loader_use(const Scenario& scenario, const TrainWorkload& train) {
  const Plan& plan = scenario.plan;
  LoaderUse use;
  use.machines = static_cast<int>(nodes_of(plan, scenario.cluster).size());
  use.batch = static_cast<double>(train.global_batch) / (plan.single_process ? use.machines : plan.data);
  use.processes = plan.single_process ? 1 : std::max(1, plan.data / use.machines);
  return use;
}

namespace {

/// The loaders of one node, like all of its group.
LoaderPipeline pipeline_on(int node, const DataLoader& loader, const Scenario& scenario, const TrainWorkload& train,
                           const Topology& topology, LoweredCollective& copy) {
  const Cluster& cluster = scenario.cluster;
  LoaderUse use = loader_use(scenario, train);
  const Bytes sample = delivered_sample(loader);
  if (sample > Bytes(0.0) && loader.pinned && !loader.transfer) {
    std::vector<int> gpus(at_index(cluster.gpus_on(node)));
    std::iota(gpus.begin(), gpus.end(), cluster.first_gpu(node));
    copy = copies_to_devices(sample * (static_cast<double>(train.global_batch) / scenario.plan.data), topology, gpus);
    use.transfer = uncontended_time(copy, topology, scenario.background);
  }
  return loader_pipeline(loader, use, cluster.node_at(node), scenario.calibration);
}

}  // namespace

void add_loader(Step& step, const DataLoader& loader, const Scenario& scenario, const TrainWorkload& train,
                const Topology& topology) {
  std::set<int> seen;
  for (const int node : nodes_of(scenario.plan, scenario.cluster)) {
    if (!seen.insert(scenario.cluster.group_of_node(node)).second) continue;
    LoweredCollective copy;
    const LoaderPipeline pipeline = pipeline_on(node, loader, scenario, train, topology, copy);
    const Seconds interval = loader_bounds(pipeline).longest() + pipeline.restart;
    const Seconds serial = pipeline.serial() + pipeline.restart;
    const bool slower = std::max(interval, serial) > std::max(step.loader_interval, step.loader_serial);
    if (step.loader && !slower) continue;
    step.loader_copy = std::move(copy);
    step.loader_interval = interval;
    step.loader_serial = serial;
    step.loader_device = pipeline.batch.device;
    step.loader_node = node;
    step.loader = pipeline;
  }
}

}  // namespace foretrain

#include "model/training/train_loader.hpp"

#include <algorithm>

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

void add_loader(Step& step, const DataLoader& loader, const Scenario& scenario, const TrainWorkload& train,
                const Topology& topology) {
  const Plan& plan = scenario.plan;
  const auto machines = static_cast<int>(nodes_of(plan, scenario.cluster).size());
  const int processes = plan.single_process ? 1 : std::max(1, plan.data / machines);
  LoaderUse use;
  use.batch = static_cast<double>(train.global_batch) / (plan.single_process ? machines : plan.data);
  use.processes = processes;
  use.machines = machines;
  const Bytes sample = delivered_sample(loader);
  const bool moves = sample > Bytes(0.0) && loader.pinned && !loader.transfer;
  if (moves) {
    const std::vector<int> gpus = gpus_of(plan, scenario.cluster);
    const Bytes per_gpu = sample * (static_cast<double>(train.global_batch) / plan.data);
    step.loader_copy =
        copies_to_devices(per_gpu, topology, std::span(gpus).first(at_index(scenario.cluster.gpus_per_node)));
    use.transfer = uncontended_time(step.loader_copy, topology, scenario.background);
  }
  const LoaderPipeline pipeline = loader_pipeline(loader, use, scenario.cluster.node, scenario.calibration);
  step.loader_interval = loader_bounds(pipeline).longest() + pipeline.restart;
  step.loader_serial = pipeline.serial() + pipeline.restart;
  step.loader_device = pipeline.batch.device;
  step.loader = pipeline;
}

}  // namespace foretrain

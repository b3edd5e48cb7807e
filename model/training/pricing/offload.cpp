#include "model/training/pricing/offload.hpp"

#include <algorithm>
#include <cstdint>
#include <map>

#include "model/base/hash.hpp"
#include "model/base/session.hpp"
#include "model/memory/stage_memory.hpp"
#include "model/parallelism/layout.hpp"

namespace foretrain {

namespace {

BytesPerSecond least_host_share(const Topology& topology) {
  std::map<LinkId, int> users;
  for (int g = 0; g < topology.gpus_per_node(); ++g) {
    for (const LinkId link : topology.route(topology.host_of_gpu(g), topology.gpu(g)).links) ++users[link];
  }
  BytesPerSecond least = BytesPerSecond::infinity();
  for (const auto& [link, count] : users) least = std::min(least, topology.link_bandwidth(link) / count);
  return least;
}

/// Every layer of every step asks for it.
struct HostShareKey {
  using Value = const BytesPerSecond;
  std::uint64_t topology;  ///< its serial number, which no other has

  bool operator==(const HostShareKey&) const = default;
  [[nodiscard]] std::uint64_t hash() const { return hash_of(topology); }
};

}  // namespace

BytesPerSecond offload_bandwidth(const Topology& topology) {
  return *session().known(HostShareKey{topology.serial()}, [&] { return least_host_share(topology); });
}

void add_offload(LayerCost& cost, const Layer& layer, const Scenario& scenario, const TrainWorkload& train,
                 const Topology& topology) {
  const Plan& plan = scenario.plan;
  if (!plan.offload.parameters && !plan.offload.activations) return;
  const BytesPerSecond bandwidth = offload_bandwidth(topology);
  Bytes in_forward;
  Bytes in_backward;
  if (plan.offload.parameters) {
    const double shards = plan.zero == 3 ? static_cast<double>(shards_of(plan)) : 1.0;
    const Bytes weight = bytes_per_element(storage_precision(train.precision));
    const Bytes weights = weight * ((layer.parameters + layer.frozen_parameters) / shards);
    in_forward = weights;
    in_backward = weights;
  }
  if (plan.offload.activations) in_backward += layer.kept(train.recompute);
  const Bytes out_forward = plan.offload.activations ? layer.kept(train.recompute) : Bytes(0.0);
  // PCIe carries both directions at once.
  const Seconds forward = std::max(in_forward, out_forward) / bandwidth;
  const Seconds backward = in_backward / bandwidth;
  const auto copy_beside = [](Seconds time, Seconds kernels, PassCost& pass) {
    pass.copies += std::max(time - kernels, Seconds(0.0));
    pass.hidden_copies += std::min(time, kernels);
  };
  copy_beside(forward, cost.forward.kernels, cost.forward);
  copy_beside(backward, cost.whole_backward().kernels, cost.backward);
}

Segment offloaded_optimizer(double parameters, Seconds backward, const Operator& update, const Scenario& scenario,
                            const TrainWorkload& train, const Topology& topology) {
  const Plan& plan = scenario.plan;
  const Cpu& cpu = scenario.cluster.node.cpu;
  const BytesPerSecond bandwidth = offload_bandwidth(topology);
  const Seconds gradients = parameters * bytes_per_element(plan.sync.gradient_precision) / bandwidth;
  const Seconds weights = plan.offload.parameters ? Seconds(0.0)
                                                  : parameters * bytes_per_element(storage_precision(train.precision)) /
                                                        bandwidth;  // else they stay there
  const Bytes traffic = minimum_traffic(update);
  const Seconds on_host = traffic / (cpu.memory_bandwidth / scenario.cluster.gpus_per_node);
  Segment segment;
  segment.compute = on_host;
  const auto passes = static_cast<double>(micro_batches(train, plan));
  segment.copies = std::max(gradients - backward, Seconds(0.0)) * passes + std::max(weights - on_host, Seconds(0.0));
  segment.hidden_copies = std::min(gradients, backward) * passes + std::min(weights, on_host);
  segment.communication = segment.copies;
  return segment;
}

}  // namespace foretrain

#include "model/training/pricing/offload.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "model/base/number.hpp"
#include "model/memory/stage_memory.hpp"
#include "model/parallelism/layout.hpp"

namespace foretrain {

BytesPerSecond offload_bandwidth(const Topology& topology) {
  std::map<LinkId, int> users;
  for (int g = 0; g < topology.gpus_per_node(); ++g) {
    for (const LinkId link : topology.route(topology.host_of_gpu(g), topology.gpu(g)).links) ++users[link];
  }
  BytesPerSecond least = BytesPerSecond::infinity();
  for (const auto& [link, count] : users) least = std::min(least, topology.link_bandwidth(link) / count);
  return least;
}

BytesPerSecond host_bandwidth(const Scenario& scenario) {
  const Cpu& cpu = scenario.cluster.node.cpu;
  const int processes = scenario.plan.single_process ? 1 : scenario.cluster.gpus_per_node;
  const double cores = std::max(number(cpu.cores) / processes, 1.0);
  const double threads = scenario.plan.host_threads > 0 ? scenario.plan.host_threads : cores;
  constexpr double usual_efficiency = 0.8;  // of the chips' bandwidth, where no hierarchy is described
  const double efficiency = cpu.hierarchy ? cpu.hierarchy->memory_efficiency : usual_efficiency;
  BytesPerSecond all = cpu.memory_bandwidth * efficiency;
  if (cpu.sockets > 1 && processes == 1) all = all / number(cpu.sockets);
  if (cpu.sockets == 2 && cpu.hierarchy && cpu.hierarchy->remote_bandwidth.value() > 0.0) {
    // Half of two processes' bytes cross, a quarter each way; a single process reads half of its own from the other
    // socket.
    all = std::min(all, cpu.hierarchy->remote_bandwidth * (processes == 1 ? 2.0 : 4.0));
  }
  const BytesPerSecond thread(scenario.calibration.host.thread_gbps * 1e9);
  return std::min(thread * threads, all / number(processes));
}

namespace {

/// Read bandwidth of a node's disks; writing is assumed equal.
BytesPerSecond disks_share(const Scenario& scenario) {
  return scenario.cluster.node.storage.read_bandwidth / number(scenario.cluster.gpus_per_node);
}

/// Each way, by a thread or a copy engine.
struct HostCopies {
  BytesPerSecond in, out;
};

/// The driver copies what is pageable through buffers of its own: read and written there on the way in; on the way out
/// what is written has to be fetched before.
HostCopies copies_of(const Scenario& scenario, const Topology& topology) {
  BytesPerSecond link = offload_bandwidth(topology);
  if (scenario.plan.offload_to_disks && scenario.plan.offload.parameters) link = std::min(link, disks_share(scenario));
  if (scenario.plan.pinned_offload) return {link, link};
  const BytesPerSecond thread(scenario.calibration.host.thread_gbps * 1e9);
  return {std::min(link, thread / 2.0), std::min(link, thread / 3.0)};
}

/// Bytes of host memory that an update fetches and writes for a parameter. Its gradient is fp32 there.
double update_traffic(const TrainWorkload& train) {
  constexpr double fp32 = 4.0, unfused = 3.0;  // PyTorch's loop over tensors: 84 bytes of operations in Adam's 28
  const double states = optimizer_state(train).value();
  const double weight = bytes_per_element(storage_precision(train.precision)).value();
  const double own = (fp32 + 2.0 * (fp32 + states)) * (train.code.fused_optimizer ? 1.0 : unfused);
  const double scaled = train.code.clip_gradients || train.precision == Precision::fp16 ? 2.0 * fp32 : 0.0;
  const double shortened = weight < fp32 && !train.code.cache_cast_weights ? fp32 + 2.0 * weight : 0.0;
  return own + scaled + shortened;
}

}  // namespace

void add_offload(LayerCost& cost, const Layer& layer, const Scenario& scenario, const TrainWorkload& train,
                 const Topology& topology) {
  const Plan& plan = scenario.plan;
  if (!plan.offload.parameters && !plan.offload.activations) return;
  const BytesPerSecond link = offload_bandwidth(topology);
  Seconds in_forward, in_backward;
  if (plan.offload.parameters) {
    const double shards = plan.zero == 3 ? static_cast<double>(shards_of(plan)) : 1.0;
    const Bytes weight = bytes_per_element(storage_precision(train.precision));
    in_forward = in_backward = weight * (layer.held() / shards) / copies_of(scenario, topology).in;
  }
  if (plan.offload.parameters && !plan.pinned_offload) {
    cost.forward.exposed_copies += std::exchange(in_forward, Seconds(0.0));
    cost.backward.exposed_copies += std::exchange(in_backward, Seconds(0.0));
  }
  const Seconds kept = plan.offload.activations ? layer.kept(train.recompute) / link : Seconds(0.0);
  // PCIe carries both directions at once.
  const auto copy_beside = [](Seconds time, Seconds kernels, LayerPassCost& pass) {
    pass.exposed_copies += std::max(time - kernels, Seconds(0.0));
    pass.hidden_copies += std::min(time, kernels);
  };
  copy_beside(std::max(in_forward, kept), cost.forward.kernels, cost.forward);
  copy_beside(in_backward + kept, cost.whole_backward().kernels, cost.backward);
}

TimeBreakdown offloaded_optimizer(double parameters, Seconds backward, const Scenario& scenario,
                                  const TrainWorkload& train, const Topology& topology) {
  const Plan& plan = scenario.plan;
  const HostCopies copies = copies_of(scenario, topology);
  const double passes = static_cast<double>(micro_batches(train, plan));
  // The last micro-batch's leave in fp32. Sums of several, and ZeRO-3's, lie on the host as they were sent: they are
  // fetched, added to and copied back (DeepSpeed, runtime/zero/stage_1_and_2.py: async_accumulate_grad_in_cpu_via_gpu;
  // stage3.py: partition_grads).
  const Bytes fp32 = bytes_per_element(Precision::fp32), sent = bytes_per_element(plan.sync.gradient_precision);
  const double sums = passes > 1.0 || plan.zero == 3 ? passes : 0.0;
  const double fetched = plan.zero == 3 ? passes : passes - 1.0;
  const Seconds out = parameters * (fp32 + sent * sums) / copies.out;
  const Seconds gradients = plan.pinned_offload ? std::max(out, parameters * sent * fetched / copies.in)
                                                : out + parameters * sent * fetched / copies.in;
  const Seconds hides = plan.pinned_offload && plan.sync.overlap ? backward * passes : Seconds(0.0);
  const Bytes weight = bytes_per_element(storage_precision(train.precision));
  TimeBreakdown segment;
  segment.compute = Bytes(update_traffic(train) * parameters) / host_bandwidth(scenario);
  // States and fp32 weights are read and written in pieces beside the update of others (DeepSpeed, runtime/swap_tensor:
  // pipelined_optimizer_swapper.py), gradients behind the backward pass.
  if (plan.offload_to_disks) {
    const Bytes swapped = optimizer_state(train) + fp32;
    segment.compute = std::max(segment.compute, parameters * (swapped * 2.0 + fp32) / disks_share(scenario)) +
                      parameters * fp32 / disks_share(scenario);
  }
  segment.exposed_copies = std::max(gradients - hides, Seconds(0.0));
  segment.hidden_copies = std::min(gradients, hides);
  if (!plan.offload.parameters) segment.exposed_copies += parameters * weight / copies.in;  // else they stay there
  return segment;
}

Seconds weights_to_host(double parameters, const Scenario& scenario, const TrainWorkload& train,
                        const Topology& topology) {
  const Bytes weight = bytes_per_element(storage_precision(train.precision));
  return parameters * weight / copies_of(scenario, topology).out;
}

}  // namespace foretrain

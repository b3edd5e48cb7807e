#include <algorithm>
#include <array>
#include <cmath>

#include "model/base/error.hpp"
#include "model/job/job.hpp"
#include "reports/explain/what_if.hpp"

namespace foretrain {

namespace {

/// Calls `change` with every kind of node of the scenario and its network.
template <typename Change>
void for_each_node(Scenario& scenario, const Change& change) {
  change(scenario.cluster.node, scenario.cluster.network);
  for (NodeGroup& group : scenario.cluster.groups) change(group.node, group.network);
}

void scale_arithmetic(Scenario& scenario, double speed) {
  for_each_node(scenario, [speed](Node& node, Network&) {
    for (FlopsPerSecond& rate : node.gpu.tensor_rate) rate *= speed;
    for (FlopsPerSecond& rate : node.gpu.vector_rate) rate *= speed;
    node.gpu.board_power_watts *= speed;  // else the board's power would cap what the units gain
  });
}

void scale_gpu_memory(Scenario& scenario, double speed) {
  for_each_node(scenario, [speed](Node& node, Network&) {
    node.gpu.memory_bandwidth *= speed;
    node.gpu.l2_bandwidth *= speed;
  });
}

template <LinkKind... Kinds>
void scale_links(Scenario& scenario, double speed) {
  for_each_node(scenario, [speed](Node& node, Network&) {
    const auto scale = [speed](LinkType& type) {
      if (((type.kind == Kinds) || ...)) type.bandwidth *= speed;
    };
    std::ranges::for_each(node.link_types, scale);
    scale(node.nic_attachment_link);
  });
}

void scale_network(Scenario& scenario, double speed) {
  for_each_node(scenario, [speed](Node&, Network& network) { network.nic_bandwidth *= speed; });
}

void scale_network_latency(Scenario& scenario, double speed) {
  for_each_node(scenario, [speed](Node&, Network& network) {
    network.latency /= speed;
    network.messages.step /= speed;
    network.messages.message_time /= speed;
  });
}

void scale_dispatch(Scenario& scenario, double speed) {
  HostConstants& host = scenario.calibration.host;
  for (TrackedNumber* time :
       {&host.dispatch_us, &host.compiled_dispatch_us, &host.graph_launch_us, &host.launch_latency_us, &host.step_us}) {
    *time /= speed;
  }
}

void scale_storage(Storage& storage, double speed) {
  for (BytesPerSecond* rate : {&storage.read_bandwidth, &storage.write_bandwidth, &storage.stream_bandwidth,
                               &storage.inner_bandwidth, &storage.link_bandwidth}) {
    *rate *= speed;
  }
  storage.random_read_iops *= speed;
  storage.random_write_iops *= speed;
  for (Seconds* time : {&storage.read_latency, &storage.write_latency, &storage.revolution, &storage.seek,
                        &storage.write_seek, &storage.track_to_track, &storage.round_trip}) {
    *time /= speed;
  }
}

DataLoader* loader_of(Scenario& scenario) {
  if (auto* alone = std::get_if<LoaderWorkload>(&scenario.workload)) return &alone->loader;
  auto* train = std::get_if<TrainWorkload>(&scenario.workload);
  return train != nullptr && train->loader ? &*train->loader : nullptr;
}

void scale_all_storage(Scenario& scenario, double speed) {
  for_each_node(scenario, [speed](Node& node, Network&) { scale_storage(node.storage, speed); });
  if (DataLoader* loader = loader_of(scenario); loader != nullptr && loader->storage) {
    scale_storage(*loader->storage, speed);
  }
}

void scale_loading(Scenario& scenario, double speed) {
  DataLoader& loader = *loader_of(scenario);
  LoaderStages& stages = loader.stages;
  for (Seconds* time : {&loader.per_sample, &stages.read, &stages.decode, &stages.preprocess, &stages.augment,
                        &stages.collate, &loader.device_decode}) {
    *time /= speed;
  }
}

void scale_host_memory(Scenario& scenario, double speed) {
  for_each_node(scenario, [speed](Node& node, Network&) {
    node.cpu.memory_bandwidth *= speed;
    for (LinkType& type : node.link_types) {
      if (type.kind == LinkKind::memory) type.bandwidth *= speed;
    }
  });
}

using Scale = void (*)(Scenario&, double);
/// The 90 % interval of measurements around predictions of it.
using Range = TrackedNumber UncertaintyConstants::*;
struct ScaledResource {
  const char* name;
  Scale scale;
  Range range;
};
constexpr std::array<ScaledResource, 9> resources = {
    {{"GPU compute", scale_arithmetic, nullptr},
     {"GPU memory bandwidth", scale_gpu_memory, nullptr},
     {"NVLink", scale_links<LinkKind::nvlink, LinkKind::nvswitch>, &UncertaintyConstants::collective},
     {"PCIe and CPU sockets", scale_links<LinkKind::pcie, LinkKind::socket>, &UncertaintyConstants::collective},
     {"network bandwidth", scale_network, &UncertaintyConstants::between_nodes},
     {"network latency", scale_network_latency, &UncertaintyConstants::small_between_nodes},
     {"kernel dispatch on the CPU", scale_dispatch, &UncertaintyConstants::plain},
     {"CPU memory bandwidth", scale_host_memory, nullptr},
     {"storage", scale_all_storage, nullptr}}};

}  // namespace

std::vector<WhatIf> scaled_resources(const Scenario& scenario) {
  std::vector<WhatIf> scaled;
  const auto add = [&](const char* name, Scale scale) {
    for (const double speed : {resource_scale, 1.0 / resource_scale}) {
      WhatIf& one = scaled.emplace_back(WhatIf{.name = name, .scenario = scenario});
      scale(*one.scenario, speed);
    }
  };
  for (const ScaledResource& resource : resources) {
    const bool links = resource.name == std::string_view("NVLink");
    add(links ? scenario.cluster.node.gpu.link_name() : resource.name, resource.scale);
  }
  Scenario copy = scenario;
  if (loader_of(copy) != nullptr) add(sample_preprocessing, scale_loading);
  return scaled;
}

Scenario with_speed(const Scenario& scenario, std::string_view resource, double speed) {
  Scenario scaled = scenario;
  const auto* const found = std::ranges::find(resources, resource, &ScaledResource::name);
  const bool loads = resource == sample_preprocessing && loader_of(scaled) != nullptr;
  if (found == resources.end() && !loads) throw InternalError("no resource of that name");
  loads ? scale_loading(scaled, speed) : found->scale(scaled, speed);
  return scaled;
}

std::vector<UncertainResource> uncertain_resources(const Scenario& scenario, double kernels) {
  std::vector<UncertainResource> uncertain;
  for (const ScaledResource& resource : resources) {
    const bool of_kernels = resource.scale == scale_arithmetic || resource.scale == scale_gpu_memory;
    if (!of_kernels && resource.range == nullptr) continue;
    const double spread = of_kernels ? kernels : std::log1p(scenario.calibration.uncertainty.*resource.range) / ninth;
    const bool is_taught = of_kernels || resource.scale == scale_dispatch || resource.scale == scale_network;
    UncertainResource& one =
        uncertain.emplace_back(UncertainResource{resource.name, spread, scenario, scenario, is_taught});
    resource.scale(*one.faster, std::exp(spread));
    resource.scale(*one.slower, std::exp(-spread));
  }
  return uncertain;
}

std::optional<Scenario> with_usual_jitter(const Scenario& scenario) {
  if (scenario.cluster.jitter || !std::holds_alternative<TrainWorkload>(scenario.workload)) return std::nullopt;
  Scenario jittery = scenario;
  jittery.cluster.jitter = usual_jitter;
  return jittery;
}

Fidelity what_if_fidelity(const Scenario& scenario, Fidelity own) {
  if (own == Fidelity::estimate) return own;
  return flows_of(make_job(scenario, own)->graph()) > many_flows ? Fidelity::estimate : own;
}

}  // namespace foretrain

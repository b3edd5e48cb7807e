#include <variant>
#include <vector>

#include "model/collectives/channels.hpp"
#include "model/hardware/topology.hpp"
#include "tests/property/properties.hpp"
#include "tests/property/times.hpp"

namespace foretrain::test {

namespace {

void hurry(Gpu& gpu) {
  gpu.boost_clock = gpu.boost_clock * 2.0;
  for (FlopsPerSecond& rate : gpu.vector_rate) rate = rate * 2.0;
  for (FlopsPerSecond& rate : gpu.tensor_rate) rate = rate * 2.0;
  gpu.memory_bandwidth = gpu.memory_bandwidth * 2.0;
  gpu.memory_latency = gpu.memory_latency * 0.5;
  gpu.l2_bandwidth = gpu.l2_bandwidth * 2.0;
  gpu.board_power_watts *= 8.0;  // at twice the clock an operation takes four times the energy
}

void hurry(LinkType& link) {
  link.bandwidth = link.bandwidth * 2.0;
  link.gpu_bandwidth = link.gpu_bandwidth * 2.0;
  link.latency = link.latency * 0.5;
}

void hurry(MemoryHierarchy& hierarchy) {
  for (CacheLevel& cache : hierarchy.caches) {
    for (Seconds* time : {&cache.latency, &cache.residence}) multiply(*time, 0.5);
    for (BytesPerSecond* rate : {&cache.read, &cache.write, &cache.shared_read}) multiply(*rate, 2.0);
  }
  for (Seconds* time : {&hierarchy.tlb.second_latency, &hierarchy.memory_latency, &hierarchy.remote_latency}) {
    multiply(*time, 0.5);
  }
  multiply(hierarchy.remote_bandwidth, 2.0);
}

void hurry(Cpu& cpu) {
  if (cpu.hierarchy) hurry(*cpu.hierarchy);
  multiply(cpu.matrix_library.call, 0.5);
  multiply(cpu.matrix_library.join, 0.5);
  cpu.clock = cpu.clock * 2.0;
  cpu.core_clock = cpu.core_clock * 2.0;
  cpu.memory_bandwidth = cpu.memory_bandwidth * 2.0;
  cpu.fp32_rate = cpu.fp32_rate * 2.0;
}

}  // namespace

std::vector<double> channels_of(const Cluster& cluster) {
  const Topology topology(cluster);
  std::vector<double> channels;
  for (int a = 0; a < topology.gpus(); ++a) {
    for (int b = a + 1; b < topology.gpus(); ++b) channels.push_back(channel_share({a, b}, topology));
  }
  return channels;
}

/// Every rate doubled and every time of the machine and its software halved: the same graph at twice the speed.
Violation twice_every_rate_is_half_the_time(const Settings& settings) {
  // The rate at which a core adds up is a constant of the code (node_routes.cpp).
  for (const char* algorithm : {"plan.sync.algorithm", "workload.collective.algorithm"}) {
    const auto stated = settings.find(algorithm);
    if (stated != settings.end() && stated->second == "parameter_server") return std::nullopt;
  }
  const Scenario before = scenario_of(settings);
  Scenario after = before;
  for (const ConstantRow& row : calibration_rows()) {
    double& value = row.field(after.calibration);
    if (row.unit == "us" || row.unit == "ms") value *= 0.5;
    if (row.unit == "GB/s") value *= 2.0;
  }
  after.calibration.measured_matmuls.clear();
  Scenario first = before;
  first.calibration.measured_matmuls.clear();
  Cluster& cluster = after.cluster;
  hurry(cluster.node.gpu);
  hurry(cluster.node.cpu);
  for (LinkType& type : cluster.node.link_types) hurry(type);
  hurry(cluster.node.nic_attachment_link);
  for (Network* network : {&cluster.network, &cluster.node.network}) {
    multiply(network->nic_bandwidth, 2.0);
    multiply(network->latency, 0.5);
    if (network->transport) multiply(network->transport->flow_limit, 2.0);
    multiply(network->messages.message_time, 0.5);
    multiply(network->messages.step, 0.5);
    multiply(network->fabric.switch_latency, 0.5);
    if (std::holds_alternative<FatTree>(network->fabric.shape)) continue;
    if (auto* sites = std::get_if<Sites>(&network->fabric.shape)) sites->distance_metres *= 0.5;
    widen_fabric(network->fabric);
  }
  for (BackgroundFlow& flow : after.background) multiply(flow.rate, 2.0);
  if (auto* train = std::get_if<TrainWorkload>(&after.workload)) {
    multiply(train->layer_overhead, 0.5);
    multiply(train->layer_dispatch, 0.5);
    multiply(train->module_dispatch, 0.5);
    multiply(train->p2p_dispatch_overhead, 0.5);
    multiply(train->message_overhead, 0.5);
  }
  if (channels_of(first.cluster) != channels_of(after.cluster)) return std::nullopt;
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    const Seconds time = time_of(first, fidelity), half = time_of(after, fidelity);
    if (differ(time, half * 2.0)) return compared(time, half * 2.0, "twice the rates, time doubled");
  }
  return std::nullopt;
}

}  // namespace foretrain::test

// On SYNTHETIC records, each a round number.
#include "validate/fit/gpu_fit.hpp"

#include <cstdlib>

#include "model/scenario/hardware/calibration_reader.hpp"
#include "tests/catch.hpp"
#include "tests/fit/synthetic.hpp"
#include "validate/fit/describe.hpp"
#include "validate/fit/points.hpp"

using namespace foretrain;

namespace {

void add(RawMeasurements& raw, const std::string& suite, std::map<std::string, std::string> parameters, double seconds,
         std::map<std::string, std::string> scenario = {}) {
  RawPoint point{synthetic::record(suite, suite + std::to_string(raw.points.size()), std::move(scenario)), {}};
  point.record.parameters = std::move(parameters);
  point.record.values = {seconds, seconds, seconds};
  raw.points.push_back(std::move(point));
}

RawMeasurements machine_of(int gpus) {
  RawMeasurements raw;
  raw.machine = read_machine_text(synthetic::machine_json(gpus), "machine.json");
  return raw;
}

double value_of(const std::vector<RobustConstant>& constants, const std::string& name) {
  for (const RobustConstant& constant : constants) {
    if (constant.name == name) return constant.after;
  }
  return -1.0;
}

}  // namespace

TEST_CASE("Launches, graphs and page locking are read off the records that measure them") {
  RawMeasurements raw = machine_of(1);
  add(raw, "launch", {{"what", "kernel_round_trip"}}, 11e-6);
  add(raw, "launch", {{"what", "event_interval"}, {"kernels", "0"}}, 1e-6);
  add(raw, "launch", {{"what", "event_interval"}, {"kernels", "1"}}, 3e-6);
  add(raw, "launch", {{"what", "graph_call"}, {"nodes", "100"}}, 20e-6);
  add(raw, "launch", {{"what", "graph_run"}, {"nodes", "1000"}}, 1.5e-3);
  add(raw, "launch", {{"what", "kernel_back_to_back"}, {"blocks", "1"}}, 2e-6);
  add(raw, "copy", {{"what", "pinned_allocate"}, {"bytes", "1000000000"}}, 0.25);
  add(raw, "copy", {{"what", "pinned_allocate"}, {"bytes", "1000"}}, 1e-4);
  HostConstants published;
  published.launch_latency_us = 4.0;
  published.synchronize_us = 5.0;
  const std::vector<RobustConstant> constants = direct_constants(raw, published);
  // 11 us less a kernel of 3 - 1 = 2 us are 9 us, of which four ninths are 4 us.
  CHECK(value_of(constants, "host.launch_latency_us") == Approx(4.0));
  CHECK(value_of(constants, "host.synchronize_us") == Approx(5.0));
  CHECK(value_of(constants, "host.graph_launch_us") == Approx(20.0));
  // 2 us a kernel in a stream, 1.5 ms / 1000 = 1.5 us in a graph.
  CHECK(value_of(constants, "host.launch_gap_us") == Approx(0.5));
  // The largest: 1 GB in a quarter of a second.
  CHECK(value_of(constants, "host.page_lock_gbps") == Approx(4.0));
  CHECK(direct_constants(machine_of(1), published).empty());
}

TEST_CASE("Memory beside tensors, fresh copies and the spread of GPUs are read off what measures them") {
  RawMeasurements raw = machine_of(2);
  // 1 GB into fresh pageable memory in half a second: 2 GB/s.
  add(raw, "copy", {{"what", "fresh_copy"}, {"bytes", "1000000000"}}, 0.5);
  add(raw, "copy", {{"what", "fresh_copy"}, {"bytes", "1000000"}}, 0.4);
  // 600 MiB beyond the allocator; of 9,000 MiB that come and go a further 450 MiB are reserved: 5 %.
  constexpr double mib = 1024.0 * 1024.0;
  const auto bytes = [](double size) { return std::to_string(static_cast<long long>(size * mib)); };
  add(raw, "steps",
      {{"device_used_bytes", bytes(11050)},
       {"reserved_peak_bytes", bytes(10450)},
       {"allocated_peak_bytes", bytes(10000)},
       {"allocated_rest_bytes", bytes(1000)}},
      0.1);
  // Nothing comes and goes, or nothing was recorded: no share.
  add(raw, "steps", {{"reserved_peak_bytes", bytes(500)}, {"allocated_peak_bytes", bytes(400)}}, 0.1);
  add(raw, "steps",
      {{"reserved_peak_bytes", bytes(900)}, {"allocated_peak_bytes", bytes(400)}, {"allocated_rest_bytes", bytes(400)}},
      0.1);
  add(raw, "steps",
      {{"reserved_peak_bytes", bytes(300)}, {"allocated_peak_bytes", bytes(400)}, {"allocated_rest_bytes", bytes(100)}},
      0.1);
  // 99 and 101: the standard deviation of two is their distance over the root of two, 1.41 %.
  add(raw, "devices", {{"work", "product"}, {"gpu", "0"}}, 0.99);
  add(raw, "devices", {{"work", "product"}, {"gpu", "1"}}, 1.01);
  add(raw, "devices", {{"work", "alone"}, {"gpu", "1"}}, 7.0);
  const std::vector<RobustConstant> constants = direct_constants(raw, load_default_calibration().host);
  CHECK(value_of(constants, "host.pageable_copy_gbps") == Approx(2.0));
  CHECK(value_of(constants, "memory.context_mib") == Approx(600.0));
  CHECK(value_of(constants, "memory.fragmentation") == Approx(0.05));
  CHECK(value_of(constants, "step.device_spread") == Approx(0.02 / std::sqrt(2.0)));
}

TEST_CASE("Figures beyond what is sensible are no constants") {
  RawMeasurements raw = machine_of(1);
  add(raw, "launch", {{"what", "kernel_round_trip"}}, 3.0);  // seconds: the machine slept
  CHECK(direct_constants(raw, load_default_calibration().host).empty());
}

TEST_CASE("Links and the L2 are described by their largest copies, rings and reads") {
  RawMeasurements raw = machine_of(2);
  const auto copy = [&](const char* direction, const char* bytes, double seconds) {
    add(raw, "copy",
        {{"what", "host_copy"}, {"memory", "pinned"}, {"timing", "stream"}, {"direction", direction}, {"bytes", bytes}},
        seconds);
  };
  copy("to_device", "4", 2e-6);
  copy("to_device", "1000000000", 0.040);
  copy("to_host", "4", 1.5e-6);
  copy("to_host", "1000000000", 0.050);
  // Waited for one by one, or of pageable memory: not the link.
  add(raw, "copy",
      {{"what", "host_copy"},
       {"memory", "pageable"},
       {"timing", "host"},
       {"direction", "to_host"},
       {"bytes", "4000000000"}},
      1.0);
  const auto peer = [&](const char* from, const char* bytes, double seconds) {
    add(raw, "peer",
        {{"timing", "stream"}, {"direction", "one"}, {"peer_access", "on"}, {"source", from}, {"bytes", bytes}},
        seconds);
  };
  peer("0", "1000", 3e-6);
  peer("0", "1000000000", 0.01);
  peer("1", "1000000000", 0.02);
  // Ten passes over 16 MB, a third of the 48 MiB, in 40 us; a pass over more than half of it does not count.
  add(raw, "memory", {{"what", "l2_read"}, {"bytes", "16000000"}, {"passes", "10"}}, 40e-6);
  add(raw, "memory", {{"what", "l2_read"}, {"bytes", "40000000"}, {"passes", "10"}}, 900e-6);
  add(raw, "collective", {}, 0.02,
      {{"workload.collective.operation", "all_gather"},
       {"workload.collective.size", "1000000000 B"},
       {"workload.collective.ranks", "2"}});
  const MeasuredFigures figures = measured_figures(raw, {});
  REQUIRE(figures.host_bandwidth);
  CHECK(figures.host_bandwidth->value() == Approx(20e9));  // the slower direction
  CHECK(figures.host_latency->value() == Approx(2e-6));
  CHECK(figures.peer_bandwidth->value() == Approx(75e9));  // median of 100 and 50 GB/s
  CHECK(figures.peer_latency->value() == Approx(3e-6));
  CHECK(figures.l2_bandwidth->value() == Approx(4e12));
  CHECK(figures.ring_bandwidth->value() == Approx(25e9));  // half of 1 GB from the other, in 20 ms
  CHECK_FALSE(figures.memory_latency);
}

TEST_CASE("Copies between the largest and the smallest are predicted, and held out") {
  RawMeasurements raw = machine_of(1);
  for (int power = 4; power <= 30; power += 2) {
    const double bytes = std::exp2(power);
    add(raw, "copy",
        {{"what", "host_copy"},
         {"memory", "pinned"},
         {"timing", "stream"},
         {"direction", "to_device"},
         {"bytes", std::to_string(1LL << power)}},
        2e-6 + bytes / 24e9);
  }
  const GpuCalibration fit = fit_gpu(raw);
  INFO((fit.not_understood.empty() ? "" : fit.not_understood.front()));
  REQUIRE(fit.pairs.size() == 14);
  const AccuracyBar& copies = fit.bars[2];
  CHECK(copies.held_out);
  CHECK(copies.points == 12);
  // One latency and one bandwidth made them: what is off is that the smallest copy also moves its bytes.
  CHECK(copies.mape < 0.02);
}

TEST_CASE("What is read off is as sure as half the distance of its quartiles, parted as the value is") {
  RawMeasurements raw = machine_of(1);
  add(raw, "launch", {{"what", "kernel_round_trip"}}, 0.0);
  raw.points.back().record.values = {10e-6, 11e-6, 12e-6};  // quartiles 10.5 and 11.5
  HostConstants published;
  published.launch_latency_us = 4.0;
  published.synchronize_us = 6.0;
  const std::vector<RobustConstant> constants = direct_constants(raw, published);
  REQUIRE(constants.size() == 2);
  CHECK(constants[0].after == Approx(11.0 * 0.4));
  CHECK(constants[0].standard_error == Approx(0.5 * 0.4));
  CHECK(constants[1].after == Approx(11.0 * 0.6));
  CHECK(constants[1].standard_error == Approx(0.5 * 0.6));
}

TEST_CASE("Rings over all GPUs of a machine are its links', rings over several machines the network's") {
  RawMeasurements raw = machine_of(4);
  const auto ring = [&](const char* ranks, const char* nodes, double seconds) {
    add(raw, "collective", {{"nodes", nodes}}, seconds,
        {{"workload.collective.operation", "all_gather"},
         {"workload.collective.size", "1000000000 B"},
         {"workload.collective.ranks", ranks}});
  };
  ring("2", "1", 0.001);  // not over all
  ring("4", "1", 0.010);
  ring("8", "2", 0.035);
  const MeasuredFigures figures = measured_figures(raw, {});
  CHECK(figures.ring_bandwidth->value() == Approx(75e9));     // three quarters of 1 GB in 10 ms
  CHECK(figures.network_bandwidth->value() == Approx(25e9));  // seven eighths in 35 ms
}

TEST_CASE("A chase through more than four times the L2 tells the latency of memory, other walks do not") {
  RawMeasurements raw =
      synthetic::measurements(load_default_calibration(), {.suites = {"memory"}, .noise = 0.0, .hold_out = false});
  const std::string node = node_document(raw.machine, {});
  const double described = measured_figures(raw, predicted_points(raw, node).points).memory_latency->value();
  for (RawPoint& point : raw.points) {
    const auto& keys = point.record.scenario;
    const double size = std::atof(keys.at("workload.operator.working_set").c_str());
    const bool chase = keys.at("workload.operator.pattern") == "dependent" && size >= 4.0 * 50331648.0;
    for (double& value : point.record.values) value *= chase ? 1.5 : 7.0;
  }
  CHECK(measured_figures(raw, predicted_points(raw, node).points).memory_latency->value() == Approx(1.5 * described));
}

// Processors that train, in the place of GPUs.
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("A processor that trains dispatches and sends by itself") {
  const Scenario whole = load_scenario("data-parallel-hosts", {"cluster.node.gpu.processor.transfer_rate=0.5 GB/s"});
  REQUIRE(whole.cluster.node.gpu.processor);
  CHECK(whole.calibration.host.dispatch_us == 0.0);  // it is in each operator's time
  CHECK(whole.calibration.step.kernel_stretch == 1.0);
  // At 1 Gbit/s, 0.125 GB/s, sending takes a quarter of a core that could send 0.5 GB/s, and half of half a core.
  CHECK(whole.calibration.collective.overlap_slowdown == Approx(0.25));
  const Scenario half = load_scenario("data-parallel-hosts", {"cluster.node.gpu.processor.transfer_rate=0.5 GB/s",
                                                              "cluster.node.gpu.processor.share=0.5"});
  CHECK(half.calibration.collective.overlap_slowdown == Approx(0.5));
  // A GPU's calibration stays as it was.
  CHECK(load_scenario("resnet-50-dgx1-v100").calibration.host.dispatch_us > 0.0);
  CHECK(std::get<TrainWorkload>(whole.workload).code.kernels == KernelSet::unfused);
}

TEST_CASE("Latencies in cycles and bandwidths in bytes a cycle are of the core's clock") {
  const Scenario scenario = load_scenario_text(
      "cluster:\n  node:\n    preset: p2.8xlarge\n    cpu:\n      boost_clock: 2.5 GHz\n"
      "      hierarchy: { preset: broadwell-ep, caches: { L1: { latency: 5 cycles, read: 48 B/cycle } } }\n"
      "workload: { operator: { kind: memory_walk, on: cpu, working_set: 1 MiB } }\n",
      "walk.yaml");
  const CacheLevel& l1 = scenario.cluster.node.cpu.hierarchy->caches.front();
  CHECK(l1.latency.value() == Approx(2e-9));
  CHECK(l1.read.value() == Approx(120e9));
}

TEST_CASE("A core that cannot send as fast as its cards sends all the time, and no more") {
  const Scenario slow = load_scenario("data-parallel-hosts", {"cluster.node.gpu.processor.transfer_rate=0.05 GB/s"});
  CHECK(slow.calibration.collective.overlap_slowdown == Approx(1.0));
}

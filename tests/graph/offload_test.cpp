// What offloading costs in time, from the bandwidths of the machine.
#include "model/graph/offload.hpp"

#include "model/estimate.hpp"
#include "model/scenario/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

TrainResult train(const std::vector<std::string>& overrides) {
  const Scenario scenario = load_scenario("r08-offload-optimizer", overrides);
  return *estimate(PreparedScenario(scenario)).train;
}

}  // namespace

TEST_CASE("GPUs share the links to their host's memory") {
  // DGX A100: two GPUs behind a PCIe switch with one link to the socket; alone a GPU has the link to itself.
  const Topology eight(load_scenario("r08-zero-2").cluster);
  const Topology one(load_scenario("r08-memory-7b").cluster);
  const Route route = one.route(one.host_of_gpu(0), one.gpu(0));
  CHECK(offload_bandwidth(one).value() == Approx(route.bandwidth.value()));
  CHECK(offload_bandwidth(eight).value() == Approx(route.bandwidth.value() / 2));
}

TEST_CASE("an offloaded update is as fast as the host's memory") {
  // AdamW in fp16, per parameter: read 2 of gradient, 4 of weight, 8 of moments, 2 + 2 for clipping; written 4, 8, 2 of
  // weight and 2 of clipped gradient: 34 bytes, at 409.6 GB/s. The copies of the weights hide behind it.
  const TrainResult offloaded = train({});
  CHECK(offloaded.breakdown.optimizer.value() == Approx(6.995e9 * 34 / 409.6e9).epsilon(0.005));
  // Gradients, 14 GB, are copied out beside one backward pass of a batch of one; what sticks out is waited for.
  const TrainResult resident = train({"plan.offload=none"});
  const Topology one(load_scenario("r08-offload-optimizer").cluster);
  const double copy = 6.995e9 * 2 / offload_bandwidth(one).value();
  const double sticks_out =
      offloaded.breakdown.exposed_communication.value() - resident.breakdown.exposed_communication.value();
  CHECK(sticks_out > 0.0);
  CHECK(sticks_out < copy);
  CHECK(offloaded.step_time > resident.step_time);
}

TEST_CASE("weights in host memory cross the bus twice a pass") {
  // A batch of one: kernels of a layer are shorter than the copy of its 428 MB, so the copies set the pace: twice 14
  // GB.
  const TrainResult both = train({"plan.offload=[optimizer, parameters]"});
  const Topology one(load_scenario("r08-offload-optimizer").cluster);
  const double copies = 2 * 6.995e9 * 2 / offload_bandwidth(one).value();
  CHECK(both.step_time.value() > copies);
  // Eight times the samples hide more of it.
  const TrainResult more =
      train({"plan.offload=[optimizer, parameters]", "workload.train.global_batch=8", "workload.train.micro_batch=8"});
  CHECK(more.samples_per_second > 2 * both.samples_per_second);
}

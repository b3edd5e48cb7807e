// R17: checkpoints as traffic.
#include "model/scenario/load/load.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

TrainResult trained(const std::vector<std::string>& overrides, Fidelity fidelity = Fidelity::flows) {
  return *predict(load_scenario("failures-checkpoints", overrides), fidelity).train();
}

}  // namespace

TEST_CASE("a checkpoint changes no step but its own") {
  for (const Fidelity fidelity : {Fidelity::estimate, Fidelity::flows}) {
    const TrainResult with = trained({}, fidelity);
    REQUIRE(with.checkpoints);
    const TrainResult rarely = trained({"workload.train.checkpoint.every=1000000"}, fidelity);
    CHECK(with.step_time == rarely.step_time);
    CHECK(with.checkpoints->step_time >= with.step_time);
    CHECK(with.checkpoints->mean_step_time >= with.step_time);
    CHECK(rarely.checkpoints->mean_step_time.value() == Approx(rarely.step_time.value()).epsilon(1e-4));
  }
}

TEST_CASE("an asynchronous checkpoint costs less than one that training waits for") {
  const auto beside = trained({}).checkpoints,
             waited = trained({"workload.train.checkpoint.mode=synchronous"}).checkpoints;
  const Seconds step = trained({}).step_time;
  CHECK((waited->step_time - step).value() == Approx((waited->copy + waited->write).value()));
  CHECK(beside->step_time < step + beside->copy * 1.001);
  CHECK(beside->mean_step_time < waited->mean_step_time);
}

TEST_CASE("copies meet what training sends through the host's links") {
  // Copies to the host, and gradients between nodes, pass the same PCIe switches on their way out. The step that has
  // both takes longer in the simulation than where each has the links for itself.
  const TrainResult estimate = trained({}, Fidelity::estimate), flows = trained({});
  const Seconds alone = estimate.checkpoints->step_time - estimate.step_time;
  CHECK(flows.checkpoints->step_time - flows.step_time >= alone);
}

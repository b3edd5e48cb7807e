// What results say of a step, against sums and ratios of what they say beside it.
#include "model/job/job.hpp"
#include "model/job/training_outlook.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

TrainResult trained(const std::string& run) { return *estimate(load_scenario(run)).train(); }

const Interruption& interruption_of(const Lifetime& life, const std::string& what) {
  const auto found = std::ranges::find(life.interruptions, what, &Interruption::what);
  REQUIRE(found != life.interruptions.end());
  return *found;
}

}  // namespace

TEST_CASE("A token meets the shared weights and those of its experts alone") {
  // 671 billion weights in all, of which 37 are used for a token (the model's own report).
  const TrainResult experts = trained("deepseek-v3-2048-h100");
  CHECK(experts.parameters == Approx(671e9).epsilon(0.02));
  CHECK(experts.active_parameters == Approx(37e9).epsilon(0.05));
  const TrainResult dense = trained("failures-waiting-for-checkpoints");
  CHECK(dense.active_parameters == dense.parameters);
  // 512 sequences of 2,048 tokens a step, on 512 GPUs.
  CHECK(dense.tokens_per_second == Approx(512.0 * 2048.0 / dense.step_time.value()));
  CHECK(dense.tokens_per_second_per_gpu == Approx(2048.0 / dense.step_time.value()));
}

TEST_CASE("The parts of a step by servers are its time, and links and servers are used as far as they bound it") {
  for (const char* run : {"servers-sharded-servers", "servers-colocated-servers", "servers-hashed-keys"}) {
    INFO(run);
    const TrainResult train = trained(run);
    CHECK(train.breakdown.total().value() == Approx(train.step_time.value()));
    CHECK(train.breakdown.data_stall.value() == Approx(0.0).margin(1e-9 * train.step_time.value()));
    REQUIRE(train.parameter_server);
    const double link = train.parameter_server->link_bound / train.step_time;
    const double server = train.parameter_server->server_bound / train.step_time;
    CHECK(train.parameter_server->link_utilisation == Approx(link < 1.0 ? link : 1.0));
    CHECK(train.parameter_server->cpu_utilisation == Approx(server < 1.0 ? server : 1.0));
  }
}

TEST_CASE("A slow GPU costs what it stretches kernels by until it is noticed, then a save and a start") {
  const Scenario scenario = load_scenario("failures-no-spare-machines");
  const TrainResult train = *estimate(scenario).train();
  CheckpointCost cost;
  cost.copy_time = Seconds(1.0);
  cost.write = Seconds(20.0);
  cost.read = Seconds(300.0);
  cost.spread = Seconds(4000.0);
  cost.fetch = Seconds(50000.0);
  const Lifetime life = lifetime_of(scenario, train, cost, {});
  const Interruption& slow = interruption_of(life, "straggler");
  CHECK(slow.takes_machine);
  CHECK_FALSE(slow.detected);
  CHECK(slow.loses == 0.0);
  // One in 100,000 hours of each of 512 GPUs; at 80 % kernels take a quarter longer, for an hour.
  CHECK(slow.mtbf.value() == Approx(100'000.0 * 3600.0 / 512.0));
  const double kernels = (train.breakdown.compute + train.breakdown.optimizer) / train.step_time;
  CHECK(slow.before.value() == Approx(3600.0 * 0.25 * kernels / (1.0 + 0.25 * kernels)));
  const Recovery& recovery = *std::get<TrainWorkload>(scenario.workload).recovery;
  CHECK(slow.restart.value() == Approx((recovery.start + recovery.initialise).value() + 54321.0));
}

TEST_CASE("A checkpoint beside training is safe when it is copied and written, and the next waits for that") {
  CheckpointCost cost;
  cost.copy_time = Seconds(3.0);
  cost.write = Seconds(40.0);
  const auto life_of = [&](const std::string& run, double longer) {
    const Scenario scenario = load_scenario(run);
    const TrainResult train = *estimate(scenario).train();
    CheckpointedStep checkpointed;
    checkpointed.step = train.step_time + Seconds(longer);
    return lifetime_of(scenario, train, cost, checkpointed);
  };
  const Lifetime beside = life_of("failures-checkpoints-in-memory", 2.0);
  CHECK(beside.unsafe == Seconds(43.0));
  CHECK(beside.least_interval == Seconds(40.0));
  CHECK(beside.blocked.value() == Approx(2.0));
  CHECK(life_of("failures-checkpoints-in-memory", -2.0).blocked == Seconds(0.0));
  const Lifetime waiting = life_of("failures-waiting-for-checkpoints", 43.0);
  CHECK(waiting.unsafe == Seconds(0.0));
  CHECK(waiting.blocked.value() == Approx(43.0));
}

TEST_CASE("A training that says nothing of its length lasts thirty days") {
  Scenario scenario = load_scenario("failures-waiting-for-checkpoints");
  const TrainResult train = *estimate(scenario).train();
  std::get<TrainWorkload>(scenario.workload).training_samples.reset();
  const Lifetime life = lifetime_of(scenario, train, CheckpointCost{}, {});
  CHECK(life.steps * life.step.value() == Approx(30.0 * 86400.0));
}

// R17: whole trainings, with failures, money and electricity.
#include "model/job/training_outlook.hpp"

#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

Result estimated(const std::string& run, const std::vector<std::string>& overrides = {}) {
  return estimate(load_scenario(run, overrides));
}

double goodput_of(const Result& result) { return result.train()->goodput->simulated.shares.useful; }

}  // namespace

TEST_CASE("a synchronous job of 512 GPUs is where Young and Daly are right") {
  const Result result = estimated("failures-waiting-for-checkpoints");
  const TrainResult::Goodput& goodput = *result.train()->goodput;
  // 64 machines of which each fails once in 3,690 hours.
  CHECK(goodput.mtbf.value() == Approx(3690.0 * 3600.0 / 64.0));
  CHECK(goodput.blocked.value() ==
        Approx((result.train()->checkpoints->copy + result.train()->checkpoints->write).value()));
  CHECK(goodput_of(result) == Approx(goodput.by_daly).epsilon(0.02));
  CHECK(goodput.intervals->best.goodput == Approx(goodput.intervals->daly->goodput).epsilon(0.005));
  // The interval that was asked for as the best is taken.
  CHECK(goodput.every == goodput.intervals->best.every);
  CHECK(result.train()->checkpoints->every == goodput.every);
  // Time to train is the mean of trainings that meet failures.
  CHECK(result.train()->time_to_train->value() == Approx(goodput.simulated.mean.value()));
}

TEST_CASE("memory of the next machine saves oftener, and a new machine fetches its state from there") {
  const Result stored = estimated("failures-waiting-for-checkpoints"),
               kept = estimated("failures-checkpoints-in-memory");
  CHECK(goodput_of(kept) > goodput_of(stored));
  CHECK(kept.train()->goodput->every < stored.train()->goodput->every);
  CHECK(*kept.train()->time_to_train < *stored.train()->time_to_train);
  CHECK(kept.train()->goodput->recovery < stored.train()->goodput->recovery);
}

TEST_CASE("after a failure the state is read and passed on, a new machine fetches it, and a slow one is saved before") {
  const Scenario scenario = load_scenario("failures-no-spare-machines");
  const TrainResult train = *estimate(scenario).train();
  CheckpointCost cost;
  cost.copy_time = Seconds(1.0);
  cost.write = Seconds(20.0);
  cost.read = Seconds(300.0);
  cost.spread = Seconds(4000.0);
  cost.fetch = Seconds(50'000.0);
  const Lifetime life = lifetime_of(scenario, train, cost, {});
  const Recovery& recovery = *std::get<TrainWorkload>(scenario.workload).recovery;
  const double processes = (recovery.start + recovery.initialise).value();
  int replaced = 0;
  for (const Interruption& failure : life.interruptions) {
    INFO(failure.what);
    if (failure.what == "straggler" || failure.what == name(FailingPart::fabric_switch)) continue;
    CHECK(failure.restart.value() == Approx(processes + 4300.0 + (failure.takes_machine ? 50'000.0 : 0.0)));
    replaced += failure.takes_machine ? 1 : 0;
  }
  CHECK(replaced > 0);
  const Interruption& slow = life.interruptions.back();
  CHECK(slow.what == "straggler");
  CHECK(slow.takes_machine);
  CHECK_FALSE(slow.detected);
  CHECK(slow.loses == 0.0);
  CHECK(slow.restart.value() == Approx(processes + 54'321.0));
  // One in 100,000 hours of each of 512 GPUs; at 80 % kernels take a quarter longer, for an hour.
  CHECK(slow.mtbf.value() == Approx(100'000.0 * 3600.0 / 512.0));
  const double kernels = (train.breakdown.compute + train.breakdown.optimizer) / train.step_time;
  CHECK(slow.before.value() == Approx(3600.0 * 0.25 * kernels / (1.0 + 0.25 * kernels)));
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

TEST_CASE("a lost server: held twice it costs every step, read from a checkpoint what was done since then") {
  const Result twice = estimated("failures-server-replicated"), read = estimated("failures-server-checkpointed");
  CHECK(twice.train()->goodput->simulated.shares.lost == 0.0);
  CHECK(twice.train()->goodput->simulated.shares.checkpoints > 0.0);
  CHECK_FALSE(twice.train()->goodput->intervals);
  const Result rarely = estimated("failures-server-checkpointed", {"workload.train.checkpoint.every=10000"});
  CHECK(rarely.train()->goodput->simulated.shares.lost > read.train()->goodput->simulated.shares.lost);
  // Asynchronous workers go on while another one is started, and lose a server's share of the work alone.
  const Result apart = estimated("failures-server-checkpointed",
                                 {"workload.train.checkpoint.every=10000", "plan.sync.consistency=asynchronous"});
  CHECK(apart.train()->goodput->simulated.shares.lost < 0.6 * rarely.train()->goodput->simulated.shares.lost);
}

TEST_CASE("days, money and electricity come with their uncertainty, and include failures") {
  const std::vector<std::string> asked = {"cluster.price=2 USD/GPU/hour",
                                          "cluster.energy={ grid: 100 g/kWh, pue: 1.25, machine: 6.5 kW }"};
  const Result result = estimated("failures-waiting-for-checkpoints", asked);
  const TrainResult::Bill& bill = *result.train()->bill;
  const Seconds time = *result.train()->time_to_train;
  CHECK(*result.train()->cost_usd == Approx(2.0 * 512 * time.value() / 3600.0));
  CHECK(bill.shortest < time);
  CHECK(bill.longest > time);
  CHECK(*bill.usd_high / *result.train()->cost_usd == Approx(bill.longest / time));
  // The step's own interval is all but the failures' part.
  CHECK(bill.longest / time >= result.uncertainty_high / result.train()->step_time);
  // Both intervals, of the step and of failures, as independent spreads on a logarithmic scale.
  const LifetimeResult& lengths = result.train()->goodput->simulated;
  const double of_step = std::log(result.train()->step_time / result.uncertainty_low);
  CHECK(std::log(time / bill.shortest) == Approx(std::hypot(of_step, std::log(lengths.mean / lengths.p5))));
  const double above = std::log(result.uncertainty_high / result.train()->step_time);
  CHECK(std::log(bill.longest / time) == Approx(std::hypot(above, std::log(lengths.p95 / lengths.mean))));
  // Boards of 400 W at a quarter when idle, 3.3 kW beside them, a quarter more for the building.
  const Breakdown& parts = result.train()->breakdown;
  const double busy = goodput_of(result) * ((parts.compute + parts.optimizer) / result.train()->step_time);
  const double watts = 1.25 * (512 * 400.0 * (0.25 + 0.75 * busy) + 64 * 3300.0);
  CHECK(*bill.watts == Approx(watts));
  CHECK(*bill.kwh == Approx(watts * time.value() / 3.6e6));
  CHECK(*bill.kg_co2 == Approx(*bill.kwh * 0.1));
}

TEST_CASE("the failures that were counted on 16,384 GPUs in 54 days") {
  const Result result = estimated("failures-goodput-llama3-405b");
  const TrainResult::Goodput& goodput = *result.train()->goodput;
  // 419 in 54 days are one in 3.09 hours.
  CHECK(goodput.mtbf.value() == Approx(54.0 * 86400.0 / 419.0).epsilon(0.002));
  CHECK(goodput_of(result) > 0.9);
  CHECK(goodput_of(result) == Approx(goodput.by_daly).epsilon(0.02));
}

TEST_CASE("An MFU above 100 % says why") {
  const auto result = [](const char* model, const char* precision) {
    return estimate(load_scenario_text(
        std::string("cluster: { node: dgx-a100-80gb, gpus_per_node: 1 }\nworkload:\n  train: ") + "{ model: " + model +
            ", micro_batch: 128, optimizer: momentum, precision: " + precision + " }\n",
        "mfu.yaml"));
  };
  // VGG is convolutions of 3 x 3, of which Winograd's algorithm in tiles of 4 x 4 needs a quarter: fp32 alone has it.
  const Result winograd = result("vgg-16", "fp32");
  CHECK(winograd.train()->mfu > 1.0);
  REQUIRE(winograd.warnings.size() == 1);
  CHECK(winograd.warnings.front().find("Winograd's algorithm and Fourier transforms need up to 4.0 times fewer") !=
        std::string::npos);
  const Result plain = result("vgg-16", "fp16");
  CHECK(plain.train()->mfu < 1.0);
  CHECK(plain.warnings.empty());
}

TEST_CASE("A format without units is reported, once for each kind of GPU") {
  const auto warnings = [](const std::string& cluster, const char* precision) {
    return estimate(load_scenario_text(
                        "cluster: " + cluster +
                            "\nworkload: { train: { model: gpt2, micro_batch: 1, precision: " + precision + " } }\n",
                        "format.yaml"))
        .warnings;
  };
  using Warnings = std::vector<std::string>;
  const char* volta = "{ node: dgx1-v100, nodes: 2 }";
  CHECK(warnings(volta, "fp16").empty());
  CHECK(warnings(volta, "fp32").empty());
  CHECK(warnings(volta, "bf16") == Warnings{"v100-sxm2-16gb has no units for bf16: products are computed in fp32; it "
                                            "has units for fp16"});
  CHECK(warnings(volta, "tf32") == Warnings{"v100-sxm2-16gb has no units for tf32: products are computed in fp32"});
  // Of nodes of several kinds, those that have no units; of two kinds with the same GPU, one line.
  CHECK(warnings("{ groups: [ { node: dgx-h100, nodes: 1 }, { node: dgx-a100-80gb, nodes: 1 }, { node: dgx-a100-80gb, "
                 "nodes: 2 } ] }",
                 "fp8") == Warnings{"a100-sxm-80gb has no units for fp8: products are computed in fp16"});
}

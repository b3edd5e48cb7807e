// Steps with jitter: which executor runs them.
#include "model/training/outcome/jitter.hpp"
#include "model/job/job.hpp"
#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Step of the scenario with all times scaled by `longer`, and the number of graphs run.
struct Drawn {
  TrainResult::Spread spread;
  int runs = 0;
};

Drawn drawn(const char* name, double longer) {
  const Scenario scenario = load_scenario(name, {"cluster.jitter={ compute: 2 %, network: 5 % }"});
  const std::unique_ptr<Job> job = make_job(scenario, Fidelity::flows);
  int runs = 0;
  const auto execute = [&](const TaskGraph& graph) {
    ++runs;
    Execution execution = run(graph);
    for (Seconds& start : execution.start) start *= longer;
    for (Seconds& finish : execution.finish) finish *= longer;
    execution.makespan *= longer;
    return execution;
  };
  const Result result = job->read(execute(job->graph()), execute);
  return {result.train()->spread.value(), runs};
}

}  // namespace

TEST_CASE("Steps with jitter are simulated as the step is, but estimated where a simulation has many flows") {
  for (const auto& [name, runs] : {std::pair("failures-jitter-2048", 41), std::pair("deepseek-v3-2048-h100", 1)}) {
    INFO(name);
    const Drawn once = drawn(name, 1.0), thrice = drawn(name, 3.0);
    CHECK(once.runs == runs);
    CHECK(thrice.runs == runs);
    // Either way they are as much longer as the step is.
    const Seconds wide = once.spread.p99 - once.spread.p50;
    CHECK(wide > Seconds(0.0));
    CHECK((thrice.spread.p99 - thrice.spread.p50) / wide == Approx(3.0));
  }
}

TEST_CASE("So many devices are throttled at once: the binomial distribution's quantiles") {
  // Eight devices, each for 1 % of its time: none in 0.99^8 = 92.3 % of all moments, one or none in 99.7 %.
  CHECK(throttled_at_once(8, 0.01, 0.92) == 0);
  CHECK(throttled_at_once(8, 0.01, 0.93) == 1);
  CHECK(throttled_at_once(8, 0.01, 0.998) == 2);
  CHECK(throttled_at_once(8, 0.0, 0.999) == 0);
  CHECK(throttled_at_once(8, 1.0, 0.5) == 8);
  // 4,096 devices: 41 on average.
  CHECK(throttled_at_once(4096, 0.01, 0.5) == 41);
}

TEST_CASE("Throttling lasts through a step: a share of all steps takes as long as its slowest device") {
  const auto step = [](const char* jitter) {
    return estimate(load_scenario("gpt2-xl-dgx-a100", {"cluster.jitter=" + std::string(jitter)}));
  };
  const Result plain = step("{ compute: 0 % }");
  const Result throttled = step("{ throttle: { share: 1 %, speed: 50 % } }");
  const Result all = step("{ throttle: { share: 100 %, speed: 50 % } }");
  // Sixteen devices: one at least is throttled in 1 - 0.99^16 = 14.9 % of all moments, six of forty steps drawn, and
  // each of these is as long as if all were.
  const double share = (throttled.time() - plain.time()) / (all.time() - plain.time());
  CHECK(share == Approx(6.0 / 40.0).margin(0.001));
  CHECK(throttled.train()->spread->p50 == plain.train()->spread->p50);
  CHECK(throttled.train()->spread->p99.value() == Approx(all.time().value()));
}

TEST_CASE("What a node's devices share makes a step longer than it is, but less than factors of each device's own") {
  const auto longer = [](const std::string& jitter) {
    const auto step = [](const std::string& of) {
      return estimate(load_scenario("gpt2-xl-dgx-a100",
                                    {"cluster.nodes=8", "workload.train.global_batch=512", "cluster.jitter=" + of}));
    };
    return step(jitter).time() / step("{ compute: 0 % }").time() - 1.0;
  };
  // The slowest of 64 devices lies 2.34 standard deviations above the mean, of 8 nodes 1.42, of 2 racks 0.56.
  const double own = longer("{ compute: 5 % }"), node = longer("{ node: 5 % }");
  const double rack = longer("{ rack: 5 %, nodes_per_rack: 4 }");
  CHECK(own > node);
  CHECK(node > rack);
  CHECK(rack > 0.0);
  CHECK(node / own == Approx(1.42 / 2.34).margin(0.15));
  CHECK(longer("{ compute: 5 %, node: 5 % }") > own);
}

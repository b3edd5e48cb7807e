// Steps that differ by chance: which executor runs them.
#include "model/job/job.hpp"
#include "model/scenario/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// What a step of the scenario takes where everything takes `longer` times as long, and how many graphs ran for that.
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
  return {result.train->spread.value(), runs};
}

}  // namespace

TEST_CASE("Steps by chance are simulated as the step is, but estimated where a simulation has many flows") {
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

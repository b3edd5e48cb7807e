#include "reports/measured/anchor.hpp"

#include "model/scenario/load/load.hpp"
#include "reports/measured/measured.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

TEST_CASE("A run of one process says how fast a machine computes, and nothing of its network") {
  // The run took 20 % longer than predicted. A scatter of 5.6 % is known, ln 2 before it was made: of ln 1.2 remain
  // 0.69² / (0.69² + 0.056²) = 99.3 %.
  const Anchor anchor = anchor_of({{1.2, 0.0, 0.0}});
  CHECK(anchor.computing == Approx(1.2).epsilon(0.005));
  CHECK(anchor.network == Approx(1.0));
  CHECK(std::sqrt(anchor.computing_variance) == Approx(anchor_scatter).epsilon(0.01));
  CHECK(std::sqrt(anchor.network_variance) == Approx(0.693).epsilon(0.01));
  CHECK_FALSE(anchor.waits);
}

TEST_CASE("Runs that wait unequally long tell computing from the network") {
  // ln r = (1 − w)·ln 1.2 + w·ln 0.9, so both are found again.
  const auto run = [](double w) { return AnchorRun{std::exp((1 - w) * std::log(1.2) + w * std::log(0.9)), w, 0.0}; };
  const Anchor anchor = anchor_of({run(0.0), run(0.5), run(0.9)});
  CHECK(anchor.computing == Approx(1.2).epsilon(0.01));
  CHECK(anchor.network == Approx(0.9).epsilon(0.01));
  CHECK(anchor.spread < 0.005);
  CHECK(anchor.waits);
}

TEST_CASE("One run between hosts is predicted as it was measured, whatever it waits for") {
  for (const double w : {0.1, 0.5, 0.9}) {
    const Anchor anchor = anchor_of({{1.3, w, 0.0}});
    const double explained = (1.0 - w) * std::log(anchor.computing) + w * std::log(anchor.network);
    CHECK(std::exp(explained) == Approx(1.3).epsilon(0.01));
  }
}

TEST_CASE("A run that scatters by itself says less than one that does not") {
  // Two runs, 1.0 and 1.2; the second one's own spread of 50 % leaves it an eightieth of the first one's weight.
  const Anchor anchor = anchor_of({{1.0, 0.0, 0.0}, {1.2, 0.0, 0.5}});
  CHECK(anchor.computing == Approx(1.002).epsilon(0.001));
}

TEST_CASE("Slower computing makes a step of one process as much longer, and one between hosts by what it computes") {
  // The step of one process is computing alone. Between two hosts a ring of LeNet's gradients follows the backward
  // pass, and takes as long as before.
  for (const char* nodes : {"1", "2"}) {
    const std::string count(nodes);
    const Scenario scenario = load_scenario("data-parallel-hosts", {"cluster.nodes=" + count, "plan.data=" + count});
    const Result before = predict(scenario, Fidelity::flows);
    const Result after = predict(computing_slower(scenario, 2.0), Fidelity::flows);
    const Seconds waits = before.train()->breakdown.exposed_communication;
    CHECK((waits > Seconds(0.0)) == (count == "2"));
    CHECK((after.time() - waits) / (before.time() - waits) == Approx(2.0).epsilon(0.03));
  }
}

TEST_CASE("The time to train of an anchored step has the step's interval") {
  Result result = large_step();
  result.train()->time_to_train = Seconds(1e6);
  result.train()->bill.emplace();
  result.set_uncertainty(0.5, 0.8);
  const Result after = anchored(result, anchor_of({{1.2, 0.0, 0.0}}), "one run");
  const TrainResult& train = *after.train();
  CHECK(after.uncertainty_high / after.time() < 1.5);
  CHECK(train.bill->longest / *train.time_to_train == Approx(after.uncertainty_high / after.time()));
  CHECK(train.bill->shortest / *train.time_to_train == Approx(after.uncertainty_low / after.time()));
}

TEST_CASE("On a GPU kernels and their dispatch take longer") {
  const Scenario scenario = load_scenario("gpt2-xl-dgx-a100", {});
  const Result before = predict(scenario, Fidelity::estimate);
  const Result after = predict(computing_slower(scenario, 1.1), Fidelity::estimate);
  CHECK(after.train()->breakdown.compute / before.train()->breakdown.compute == Approx(1.1).epsilon(0.02));
}

TEST_CASE(
    "Anchored, waiting is stretched, rates fall, memory stays, and the interval is the runs' where it is narrower") {
  Result before = large_step();
  before.set_uncertainty(0.5);
  Anchor anchor = anchor_of({{1.0, 0.0, 0.0}, {2.0, 1.0, 0.0}});
  const Seconds waits = before.train()->breakdown.exposed_communication;
  const Result after = anchored(before, anchor, "my runs");
  CHECK(after.train()->breakdown.exposed_communication / waits == Approx(2.0).epsilon(0.01));
  CHECK(after.train()->breakdown.compute == before.train()->breakdown.compute);
  CHECK(after.time() == before.time() + (after.train()->breakdown.exposed_communication - waits));
  CHECK(after.train()->tokens_per_second / before.train()->tokens_per_second == Approx(before.time() / after.time()));
  CHECK(after.train()->memory.total() == before.train()->memory.total());
  CHECK(after.uncertainty_high / after.uncertainty_low < before.uncertainty_high / before.uncertainty_low);
  CHECK(after.provenance.back().name == "anchor.network");
  CHECK_THAT(after.provenance.back().source, Catch::Contains("my runs"));
  // A narrow interval is not made wider.
  before.set_uncertainty(0.01);
  const Result narrow = anchored(before, anchor, "my runs");
  CHECK(narrow.uncertainty_high / narrow.uncertainty_low == Approx(1.01 * 1.01));
}

TEST_CASE("Nothing but a training step is an anchor of steps") {
  Case row;
  row.measured = {{MeasuredQuantity::time, 0.015, {"cases.csv", 2, 5}}};
  CHECK_THROWS_AS(anchor_run(row, collective()), UsageError);
  row.measured = {{MeasuredQuantity::step_time, 44.0, {"cases.csv", 2, 5}}};
  row.replay["spread"] = "0.1";
  CHECK(anchor_run(row, large_step()).spread == Approx(0.0741).epsilon(0.01));  // quartiles lie 1.349 deviations apart
  row.replay["spread"] = "wide";
  CHECK_THROWS_AS(anchor_run(row, large_step()), ScenarioError);
}

}  // namespace foretrain::test

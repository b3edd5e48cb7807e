#include "reports/cli/plan_options.hpp"

#include "model/scenario/load/load.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Two machines of eight GPUs of 400 W, half of which train, for 3 USD each and hour: 100 steps of 64 samples.
Scenario hundred_steps(const char* price = ", price: 3 USD/GPU/hour", const char* samples = ", samples: 6400 samples") {
  return load_scenario_text(std::string("cluster: { node: dgx-a100-80gb, nodes: 2, gpus_per_node: 4") + price +
                                " }\nworkload: { train: { model: gpt2, global_batch: 64, micro_batch: 1" + samples +
                                " } }\n",
                            "aim.yaml");
}

}  // namespace

TEST_CASE("A search aims at time, at money of the GPUs that train, at energy of all boards") {
  const Scenario scenario = hundred_steps();
  CHECK(usd_per_second(scenario.cluster) == Approx(3.0 * 8.0 / 3600.0));
  CHECK(watts_of(scenario.cluster) == Approx(400.0 * 16.0));
  CHECK(objective_of({PlanGoal::time, {}}, scenario).per_second == 1.0);
  CHECK(objective_of({PlanGoal::memory, {}}, scenario).per_second == 1.0);
  CHECK(objective_of({PlanGoal::cost, {}}, scenario).per_second == Approx(3.0 * 8.0 / 3600.0));
  CHECK(objective_of({PlanGoal::energy, {}}, scenario).per_second == Approx(6400.0));
  const Scenario free = hundred_steps("");
  CHECK(usd_per_second(free.cluster) == 0.0);
  CHECK_NOTHROW(objective_of({PlanGoal::time, {}}, free));
  CHECK_THROWS_WITH(objective_of({PlanGoal::cost, {}}, free), Catch::StartsWith("--objective cost: no price"));
  Scenario dark = scenario;
  dark.cluster.node.gpu.board_power_watts = 0.0;
  CHECK_THROWS_WITH(objective_of({PlanGoal::energy, {}}, dark),
                    Catch::StartsWith("--objective energy: no board power"));
}

TEST_CASE("A step may take a hundredth of a training of a hundred steps, or of what its money lasts") {
  const auto limit = [](const PlanLimits& limits, const Scenario& scenario = hundred_steps()) {
    return objective_of({PlanGoal::time, limits}, scenario).limit.value();
  };
  CHECK(limit({Seconds(1000.0), std::nullopt}) == Approx(10.0));
  // A dollar lasts 150 s.
  CHECK(limit({std::nullopt, 4.0}) == Approx(6.0));
  CHECK(limit({Seconds(1000.0), 4.0}) == Approx(6.0));
  CHECK(limit({Seconds(500.0), 4.0}) == Approx(5.0));
  CHECK_FALSE(is_finite(Seconds(limit({std::nullopt, std::nullopt}))));
  CHECK_THROWS_WITH(limit({Seconds(1000.0), std::nullopt}, hundred_steps(", price: 3 USD/GPU/hour", "")),
                    Catch::Contains("how long is the training?"));
  CHECK_THROWS_WITH(limit({std::nullopt, 4.0}, hundred_steps("")), Catch::StartsWith("--budget: no price"));
  CHECK_NOTHROW(limit({Seconds(1000.0), std::nullopt}, hundred_steps("")));
}

// What a search for plans aims at, and options that subcommands share: their bounds and what is wrong beyond these.
#include "reports/cli/plan_aim.hpp"

#include <algorithm>

#include "model/base/error.hpp"
#include "model/scenario/load/load.hpp"
#include "reports/cli/options.hpp"
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

/// What a program's options answer to these arguments; empty where they are right.
std::string answer_to(const std::function<void(CLI::App&)>& add, const std::vector<std::string>& arguments) {
  CLI::App app;
  add(app);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
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

TEST_CASE("Shared options take what they say, and answer what else there is") {
  int jobs = 0;
  const auto with_jobs = [&](CLI::App& app) { add_jobs(app, jobs); };
  CHECK(answer_to(with_jobs, {}).empty());
  CHECK(jobs >= 1);
  CHECK(answer_to(with_jobs, {"--jobs", "1024"}).empty());
  CHECK(jobs == 1024);
  CHECK(answer_to(with_jobs, {"--jobs", "1"}).empty());
  for (const char* wrong : {"0", "1025", "-1", "x"}) CHECK_FALSE(answer_to(with_jobs, {"--jobs", wrong}).empty());

  Fidelity fidelity = Fidelity::flows;
  const auto with_fidelity = [&](CLI::App& app) { add_fidelity(app, fidelity); };
  CHECK(answer_to(with_fidelity, {"--fidelity", "steps"}).empty());
  CHECK(fidelity == Fidelity::steps);
  CHECK(answer_to(with_fidelity, {"--fidelity", "exact"}) ==
        "--fidelity: there is no exact; write estimate, flows or steps");

  std::string path;
  const auto with_picture = [&](CLI::App& app) { add_picture(app, "-o", path, "the picture"); };
  for (const char* right : {"a.svg", "a.png", "a.pdf"}) CHECK(answer_to(with_picture, {"-o", right}).empty());
  CHECK_THAT(answer_to(with_picture, {"-o", "a.txt"}), Catch::EndsWith("written as .svg, .png or .pdf"));
  for (const char* trace : {"a.json", "a.json.gz"}) {
    CHECK_THAT(answer_to(with_picture, {"-o", trace}), Catch::EndsWith("; `foretrain timeline` writes a trace"));
  }

  std::vector<std::string> overrides;
  const auto with_overrides = [&](CLI::App& app) { add_overrides(app, overrides); };
  CHECK(answer_to(with_overrides, {"--set", "a=1", "--stack", "/s.yaml", "--set", "b=2"}).empty());
  CHECK(overrides.size() == 3);
  CHECK(std::ranges::find(overrides, "plan.trainer=/s.yaml") != overrides.end());
  CHECK_FALSE(answer_to(with_overrides, {"--set", "a=1", "b=2"}).empty());
}

TEST_CASE("A stack and a calibration are set in every row, unless there is none") {
  const std::vector<Case> rows(2);
  CHECK(with_stack(rows, "").front().overrides.empty());
  CHECK(with_calibration(rows, "").front().overrides.empty());
  for (const Case& row : with_stack(rows, "/s.yaml")) {
    REQUIRE(row.overrides.size() == 1);
    CHECK(row.overrides.front().key == "plan.trainer");
    CHECK(row.overrides.front().value == "/s.yaml");
  }
  for (const Case& row : with_calibration(rows, "c.json")) {
    REQUIRE(row.overrides.size() == 1);
    CHECK(row.overrides.front().key == "calibration");
    CHECK(row.overrides.front().value == "c.json");
  }
}

// Replays as tables, cases and pictures, from measurements made by hand.
#include "reports/measured/replay.hpp"

#include <unistd.h>

#include <filesystem>

#include "model/base/error.hpp"
#include "model/base/files.hpp"
#include "model/scenario/load/cases.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

HostMeasurement run(const std::string& name, int ranks, double predicted, double measured) {
  HostMeasurement made;
  made.name = name;
  made.group = "host-scaling";
  made.ranks = ranks;
  made.size = Bytes(4e6);
  made.samples = {measured};
  made.predicted = Seconds(predicted);
  return made;
}

const HostMachine machine{"Some Processor", 2, Bytes(8e9), "Linux 6.1", "2026-01-02"};

}  // namespace

TEST_CASE("a replay's table says how far off the prediction is, and when the cores set the time", "[replay]") {
  HostMeasurement busy = run("busy", 4, 0.1, 0.2);
  busy.busy = 0.97;
  const std::string text = replay_text({run("ring-4", 4, 0.11, 0.1), busy});
  CHECK_THAT(text, Catch::Contains("+10.0 %"));  // 110 ms for 100 ms
  CHECK_THAT(text, Catch::Contains("-50.0 %") && Catch::Contains("97 %  *"));
  CHECK_THAT(text, Catch::Contains("* the cores were busy more than 90 % of the time"));
  CHECK(replay_text({run("ring-4", 4, 0.11, 0.1)}).find('*') == std::string::npos);
}

TEST_CASE("a table of cases comes back with what was measured, and reads as one", "[replay]") {
  const std::string table =
      "case,group,cluster.faults,replay.executor\n"
      "ring-4,host-own,\"[{ node: 1, card: 0, bandwidth: 50 % }]\",own\n"
      "other,host-own,,gloo\n";
  const std::string filled = measured_table(table, "plan.csv", {run("ring-4", 4, 0.1, 0.25)}, machine);
  const std::vector<Case> cases = read_cases_text(filled, "filled.csv");
  REQUIRE(cases.size() == 2);
  REQUIRE(cases[0].measured.size() == 1);
  CHECK(cases[0].measured[0].value == Approx(0.25));
  CHECK(cases[0].overrides[0].value == "[{ node: 1, card: 0, bandwidth: 50 % }]");
  CHECK(cases[0].replay.at("executor") == "own");
  CHECK_THAT(cases[0].source, Catch::Contains("Some Processor") && Catch::Contains("2026-01-02"));
  CHECK(cases[1].measured.empty());
  // Filled in again, it gains no columns.
  CHECK(measured_table(filled, "filled.csv", {run("ring-4", 4, 0.1, 0.25)}, machine) == filled);
}

TEST_CASE("a step's time has a column of its own, and its waiting stands in the table", "[replay]") {
  HostMeasurement step = run("pipeline", 4, 0.2, 0.25);
  step.trains = true;
  step.predicted_waiting = Seconds(0.06);
  step.waiting = Seconds(0.1);
  const std::string filled = measured_table("case,base\npipeline,x\nring,y\n", "plan.csv", {step}, machine);
  CHECK_THAT(filled, Catch::Contains("measured.step_time") && Catch::Contains("250 ms"));
  CHECK(filled.find("measured.time") == std::string::npos);
  const std::string text = replay_text({step, run("ring", 4, 0.11, 0.1)});
  CHECK_THAT(text, Catch::Contains("30, 40 %"));  // 60 of 200 ms, 100 of 250
  CHECK(replay_text({run("ring", 4, 0.11, 0.1)}).find("waiting") == std::string::npos);
}

TEST_CASE("a step's tasks come back from the file and stand beside their predictions, stream by stream", "[replay]") {
  HostMeasurement step = run("pipeline", 2, 0.2, 0.25);
  const auto ms = [](double value) { return Seconds(value * 1e-3); };
  step.tasks = {{"stage 0 compute", "forward", "compute", ms(0), ms(10), ms(1), ms(12)},
                {"stage 0 to next", "pipeline send/receive", "communication", ms(10), ms(14), ms(12), ms(18)},
                {"stage 1 compute", "forward", "compute", ms(14), ms(24), ms(18), ms(29)}};
  step.waiting = step.predicted_waiting = ms(5);
  const std::string file =
      fmt::format("{}/replay-test-{}.json", std::filesystem::temp_directory_path().string(), getpid());
  write_file(file, to_json(HostMeasurements{machine, {step}}));
  const HostMeasurement read = read_host_measurements(file).runs.at(0);
  std::filesystem::remove(file);
  REQUIRE(read.tasks.size() == 3);
  CHECK(read.tasks[2].end.value() == Approx(0.029));
  CHECK(read.waiting->value() == Approx(0.005));
  const TimelineFigure figure = host_timeline(read, "compute");
  REQUIRE(figure.entries.size() == 4);
  CHECK(figure.entries[0].resource == "stage 0 compute, predicted");
  CHECK(figure.entries[1].resource == "stage 0 compute, measured");
  CHECK(figure.entries[3].start.value() == Approx(0.018));
  CHECK(figure.entries[3].duration.value() == Approx(0.011));
  CHECK(host_timeline(read, "").entries.size() == 6);
  CHECK_THROWS_WITH(host_timeline(read, "gradients"), Catch::Contains("no stream"));
  CHECK_THROWS_WITH(host_timeline(run("ring", 2, 0.1, 0.1), ""), Catch::Contains("--timeline"));
}

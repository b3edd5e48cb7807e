// Whole reports on measurements: accuracy, pairs, anchors, fits.
#include <nlohmann/json.hpp>

#include "reports/measured/accuracy.hpp"
#include "reports/measured/text_fit.hpp"
#include "tests/catch.hpp"
#include "tests/reports/whole.hpp"

namespace foretrain::test {

TEST_CASE("The page of an accuracy: groups, anchors, pairs, what has no prediction, every case", "[golden]") {
  std::vector<Comparison> cases = {{"a", "one", "step_time", 2.0, 2.5},
                                   {"b", "one", "samples_per_second", 100.0, 125.0},
                                   {"c", "two", "memory_per_gpu", 8e9, 8e9},
                                   {"d", "two", "step_time", 4.0, 2.0}};
  cases[0].covered = true;
  cases[1].covered = false;
  cases[3].covered = true;
  AccuracyReport report = accuracy_report(cases, {{"e", "no such plan"}, {"f", "no memory"}, {"g", "no such plan"}}, 1);
  check_whole("page-an-accuracy-groups-anchors.txt", to_text(report, {.verbose = true}));
  // Three of four intervals hold what was measured.
  cases.push_back({"d", "two", "step_time", 4.0, 4.0});
  cases.back().covered = true;
  const AccuracyReport plain = accuracy_report(cases, {}, 0);
  CHECK_THAT(to_text(plain), Catch::Contains("  75 %  ") && !Catch::Contains("errors exclude"));
  report.anchored = 4;
  for (GroupAccuracy& group : report.groups) group.anchors = 0;
  const Anchor twice{.runs = 2, .computing = 1.25, .network = 0.5, .spread = 0.03, .waits = true};
  const Anchor once{.runs = 1, .computing = 0.75, .network = 2.0, .spread = 0.04};
  report.anchors = {{"gpt", twice}, {"lenet", once}};
  report.failed.clear();
  for (int i = 0; i < 14; ++i) report.failed.push_back({std::string(1, static_cast<char>('a' + i)), "no plan"});
  const std::string text = to_text(report);
  check_whole("page-an-accuracy-groups-anchors-2.txt", text.substr(text.find("\nScale factors of 3 cases")));
  report.anchors = {{"lenet", once}};
  CHECK_THAT(to_text(report), Catch::Contains("\nScale factors of 1 case per model, which the errors exclude\n"));
  report.failed.resize(10);
  CHECK_THAT(to_text(report), Catch::EndsWith("  no plan\n    a, b, c, d, e, f, g, h, i, j\n"));
}

TEST_CASE("Pairs are identified by group and together, with those that are predicted the other way round", "[golden]") {
  AccuracyReport report;
  const auto pairs_in = [&] {
    const std::string text = to_text(report);
    return text.substr(text.find("\nPairs ranked"));
  };
  report.pairs = PairReport{{"plan.sync", "plan.data"}, 0, 0, 3, {}, {}};
  CHECK(pairs_in() == R"(
Pairs ranked as measured
  Pairs differ only in plan.sync, plan.data, and by more than 5 % as measured.

  No such pair; 3 pairs are closer.
)");
  report.pairs->close = 1;
  CHECK_THAT(pairs_in(), Catch::EndsWith("  No such pair; 1 pair is closer.\n"));
  report.pairs = PairReport{{"plan.sync"}, 4, 3, 0, {{"one", 4, 3}}, {}};
  report.pairs->wrong = {{"ring", "tree", "one", "step_time", 1.256, 0.804}};
  check_whole("pairs-told-group-together-those.txt", pairs_in());
  report.pairs = PairReport{{"x"}, 5, 5, 1, {{"one", 4, 4}, {"two", 1, 1}}, {}};
  check_whole("pairs-told-group-together-those-2.txt", pairs_in());
}

TEST_CASE("Runs say how far apart they are where there are several") {
  CHECK(anchor_text({.runs = 1, .spread = 0.02}) == "1 step");
  CHECK(anchor_text({.runs = 2, .spread = 0.02}) == "2 steps, ± 2.0 % among each other,");
}

TEST_CASE("A fit tells its constants and the errors of its groups, and of GPUs left out") {
  FitResult fit;
  fit.found.constants = {{"matmul.tensor_efficiency", 0.9, 0.87654321}, {"kernel.launch_us", 4.0, 12345.678}};
  fit.errors = {{"products", "a100", false, 12, 0.034, -0.012}, {"convolutions", "h100", false, 3, 0.1, 0.05}};
  LeftOut left{"a100",
               fit,
               {{"energy.fp16", 1.0, 0.5}},
               {{"products", "a100", false, 30, 0.1, -0.1}, {"other", "a100", false, 10, 0.2, 0.2}}};
  const auto json = nlohmann::json::parse(fit_json(&fit, {left}));
  CHECK(json["constants"]["kernel.launch_us"] == 12345.678);
  CHECK(json["groups"][0] ==
        nlohmann::json{{"group", "products"}, {"gpu", "a100"}, {"n", 12}, {"mape", 0.034}, {"bias", -0.012}});
  CHECK(json["left_out"][0]["mape"] == Approx(0.125));  // (30 · 10 % + 10 · 20 %) / 40
  CHECK(json["left_out"][0]["by_rule"]["energy.fp16"] == 0.5);
  const auto alone = nlohmann::json::parse(fit_json(nullptr, {left}));
  CHECK_FALSE(alone.contains("constants"));
  fit.found.undetermined = {{"matmul.tile_loss", "no measured point depends on it"}};
  CHECK(nlohmann::json::parse(fit_json(&fit, {}))["undetermined"]["matmul.tile_loss"] ==
        "no measured point depends on it");
}

TEST_CASE("A GPU's calibration tells what was measured, what came of it and which bars are met", "[golden]") {
  GpuCalibration fit;
  fit.machine.gpus.resize(2);
  fit.machine.gpus[0].name = "NVIDIA X100";
  fit.machine.gpus[0].clock = Hertz(1.98e9);
  fit.machine.driver = "550.1";
  fit.machine.date = "2025-06-01";
  fit.gpu = "x100";
  fit.suites["matmul"] = {
      .measured = 42, .failed = 1, .skipped = 2, .fitted = 30, .held_out = 5, .direct = 4, .drawn = 2, .left_out = 1};
  check_whole("gpus-calibration-tells-was-measured.txt", to_text(fit));
  fit.known = true;
  fit.notes = {"one point is far off"};
  const auto trial = [](const char* name, int points, bool adopted, int judged, double published, double fitted) {
    StageTrial result;
    result.name = name;
    result.points = points;
    result.adopted = adopted;
    result.judged = judged;
    result.published = published;
    result.fitted = fitted;
    return result;
  };
  fit.stages = {trial("streaming", 20, true, 3, 0.2, 0.1), trial("products", 10, false, 1, 0.1, 0.2),
                trial("few", 2, true, 0, 0.0, 0.0)};
  fit.direct = {{"host.dispatch_us", 0.0, 3.5, 0.25, false, "median"}};
  fit.fitted = {{"matmul.vector_efficiency", 0.9, 0.8, 0.01, false},
                {"matmul.vector_efficiency", 0.9, 0.8, 0.01, true}};
  fit.undetermined = {{"other", "nothing tells"}};
  fit.errors = {{"products", "matmul", true, 5, 0.05, -0.01, 0.2, "m 1"},
                {"products", "matmul", false, 30, 0.04, 0.0, -0.1, "m 2"}};
  fit.matmul_note = "The table helps.";
  fit.bars = {{"products", 0.05, 5, true, 0.05}, {"streams", 0.05, 5, false, 0.0501}, {"nothing", 0.1, 0, false, 0.0}};
  check_whole("gpus-calibration-tells-was-measured-2.txt", to_text(fit));
}

}  // namespace foretrain::test

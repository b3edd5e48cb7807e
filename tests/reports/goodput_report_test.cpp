// What failures leave of the time, as text and JSON.
#include "reports/result/goodput_report.hpp"

#include <nlohmann/json.hpp>

#include "reports/result/json.hpp"
#include "reports/result/text.hpp"
#include "tests/catch.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

namespace {

/// 90 % of the time are steps that last; checkpoints of 20 s, one failure in 10,000 s.
Result training_with_failures() {
  Result result = large_step();
  TrainResult::Goodput& goodput = result.train()->goodput.emplace(TrainResult::Goodput{});
  goodput.mtbf = Seconds(10'000.0);
  goodput.recovery = Seconds(100.0);
  goodput.blocked = Seconds(20.0);
  goodput.every = 14;
  goodput.kinds = {"gpu", "software"};
  LifetimeResult& life = goodput.simulated;
  life.shares = {.useful = 0.9, .checkpoints = 0.03, .lost = 0.04, .detection = 0.01, .restarts = 0.02};
  life.mean = Seconds(26.7 * 86400.0);
  life.p5 = Seconds(26.0 * 86400.0), life.p50 = life.mean, life.p90 = Seconds(27.1 * 86400.0);
  life.p95 = Seconds(27.3 * 86400.0), life.p99 = Seconds(28.0 * 86400.0);
  life.interruptions = {180.0, 50.0};
  goodput.by_daly = 0.91;
  goodput.intervals = IntervalSearch{IntervalChoice{14, 0.9},
                                     IntervalChoice{13, 0.899},
                                     {15, 0.901},
                                     {{1, 0.5}, {13, 0.899}, {14, 0.9}, {15, 0.901}, {200, 0.6}}};
  result.train()->bill =
      TrainResult::Bill{Seconds(24.0 * 86400.0), Seconds(30.0 * 86400.0), 1.3e6, 1.7e6, 9e5, 5.8e5, 3.2e5};
  result.train()->split = TrainResult::Split{"best", {{"DGX H100", 4, 11}, {"DGX A100", 6, 6}}, Seconds(60.0)};
  return result;
}

}  // namespace

TEST_CASE("JSON of a training with failures is read back as it was") {
  const Result result = training_with_failures();
  const std::string json = to_json(result);
  const Result back = result_from_json(json);
  CHECK(to_json(back) == json);
  REQUIRE(back.train()->goodput);
  CHECK(back.train()->goodput->intervals->tried.size() == 5);
  CHECK(back.train()->bill->kg_co2 == 3.2e5);
  CHECK(back.train()->split->kinds[1].micro_batches == 6);
  const auto parsed = nlohmann::json::parse(json);
  CHECK(parsed.at("failures").at("goodput") == 0.9);
  CHECK(parsed.at("failures").at("best").at("every") == 15);
  CHECK(parsed.at("training").at("kwh") == 5.8e5);
}

}  // namespace foretrain::test

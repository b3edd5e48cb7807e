#include "reports/measured/measured.hpp"

#include "reports/measured/text_fit.hpp"
#include "tests/catch.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

namespace {

Case case_with(MeasuredQuantity quantity, double value) {
  Case row;
  row.name = "case";
  row.group = "group";
  row.measured = {{quantity, value, {"cases.csv", 2, 5}}};
  return row;
}

/// A disk's reads in seconds; what is allowed is 20 %.
BenchmarkRow read_of(const char* size, double measured, double predicted) {
  BenchmarkRow row;
  row.benchmark = "disk_read";
  row.parameters = {{"block", size}, {"pattern", "random"}};
  row.measured = measured;
  row.unit = "s";
  row.spread = 0.04;
  row.samples = 9;
  row.best = 0.9 * measured;
  row.predicted = predicted;
  return row;
}

}  // namespace

TEST_CASE("Each measured quantity is compared with its own prediction") {
  CHECK(predicted_value(large_step(), MeasuredQuantity::step_time) == 44.0);
  CHECK(predicted_value(large_step(), MeasuredQuantity::samples_per_second) == 34.9);
  CHECK(predicted_value(large_step(), MeasuredQuantity::tokens_per_second) == 71500.0);
  CHECK(predicted_value(large_step(), MeasuredQuantity::memory_per_gpu) == 66e9);  // 6 + 6 + 32 + 20 + 2 GB
  CHECK(predicted_value(collective(), MeasuredQuantity::time) == 0.015);
  CHECK(predicted_value(collective(), MeasuredQuantity::bus_bandwidth) == 16e9);
  CHECK(predicted_value(matrix_product(), MeasuredQuantity::time) == 0.0005);
  CHECK_FALSE(predicted_value(large_step(), MeasuredQuantity::bus_bandwidth));
  Result training = short_step(0.5);
  CHECK_FALSE(predicted_value(training, MeasuredQuantity::time_to_train));  // without a length
  training.train()->time_to_train = Seconds(86400.0);
  CHECK(predicted_value(training, MeasuredQuantity::time_to_train) == 86400.0);
  CHECK_FALSE(predicted_value(collective(), MeasuredQuantity::step_time));
}

TEST_CASE("A stretched training's bill stretches with it, but not its power") {
  Result training = short_step(0.5);
  training.train()->time_to_train = Seconds(100.0);
  training.train()->bill = TrainResult::Bill{Seconds(90.0), Seconds(130.0), 9.0, 13.0, 500.0, 2.0, std::nullopt};
  const TrainResult::Bill bill = *stretched(training, 2.0).train()->bill;
  CHECK(bill.shortest == Seconds(180.0));
  CHECK(bill.longest == Seconds(260.0));
  CHECK(bill.usd_high == 26.0);
  CHECK(bill.watts == 500.0);
  CHECK(bill.kwh == 4.0);
  CHECK_FALSE(bill.kg_co2);
}

TEST_CASE("A range covers times between its ends, and rates between what these make of them") {
  Result step = large_step();  // 44 s, 34.9 samples a second
  step.uncertainty_low = Seconds(40.0);
  step.uncertainty_high = Seconds(66.0);
  const auto covers = [&](MeasuredQuantity quantity, double value) {
    return compare(case_with(quantity, value), step).front().covered;
  };
  for (const auto& [seconds, covered] : {std::pair(39.0, false), {41.0, true}, {65.0, true}, {67.0, false}}) {
    CHECK(covers(MeasuredQuantity::step_time, seconds) == covered);
    CHECK(covers(MeasuredQuantity::samples_per_second, 34.9 * 44.0 / seconds) == covered);
  }
  CHECK_FALSE(covers(MeasuredQuantity::memory_per_gpu, 66e9).has_value());
}

TEST_CASE("A case that measures nothing, or something else, cannot be compared") {
  CHECK_THROWS_AS(compare(Case{}, large_step()), UsageError);
  CHECK_THROWS_WITH(compare(case_with(MeasuredQuantity::bus_bandwidth, 1.0), large_step()),
                    Catch::Contains("cases.csv:2:5: measured.bus_bandwidth"));
}

TEST_CASE("A step measured 10 % slower and a throughput 20 % lower make a factor of 1.15") {
  // 1.1 / 1.0 and 60 / 50; the median of two is their mean. Memory has no say.
  CHECK(time_factor({{"a", "", "step_time", 1.1, 1.0},
                     {"b", "", "samples_per_second", 50.0, 60.0},
                     {"c", "", "memory_per_gpu", 1.0, 5.0}}) == Approx(1.15));
  CHECK_THROWS_AS(time_factor({{"c", "", "memory_per_gpu", 1.0, 5.0}}), UsageError);
}

TEST_CASE("Anchoring stretches every time and nothing else, and says so") {
  const Result before = large_step();
  const Result after = anchored(before, 2.0, "my runs");
  CHECK(after.time() == Seconds(88.0));
  CHECK(after.train()->breakdown.total() == before.train()->breakdown.total() * 2.0);
  CHECK(after.train()->tokens_per_second == before.train()->tokens_per_second / 2.0);
  CHECK(after.train()->mfu == before.train()->mfu / 2.0);
  CHECK(after.train()->memory.total() == before.train()->memory.total());
  CHECK(after.train()->cost_usd == *before.train()->cost_usd * 2.0);
  REQUIRE(after.provenance.size() == before.provenance.size() + 1);
  CHECK(after.provenance.back().name == "anchor.factor");
  CHECK(after.provenance.back().source == "my runs");
}

TEST_CASE("A calibration's table marks what is predicted too far off") {
  CalibrationReport report;
  report.complete = true;
  report.rows = {read_of("4 KiB", 100e-6, 110e-6), read_of("1 MiB", 1e-3, 0.7e-3)};
  BenchmarkRow missing = read_of("2 MiB", 0.0, 0.0);
  missing.samples = 0;
  missing.note = "no room";
  report.rows.push_back(missing);
  const std::string text = to_text(report);
  INFO(text);
  CHECK_THAT(text, !Catch::Contains("incomplete"));
  for (const char* piece : {"block 4 KiB, pattern", "100 us", "4.0 %", "90.0 us", "110 us", "+10.0 %", "block 1 MiB",
                            "-30.0 % !", "block 2 MiB", "no room", "median error 20.0 %, worst 30.0 %, allowed 20 %"}) {
    INFO(piece);
    CHECK_THAT(text, Catch::Contains(piece));
  }
  CHECK_THAT(text, !Catch::Contains("+10.0 % !"));
}

}  // namespace foretrain::test

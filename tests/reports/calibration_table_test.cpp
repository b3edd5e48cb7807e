#include "reports/measured/text_fit.hpp"

#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

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

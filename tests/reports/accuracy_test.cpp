#include "reports/measured/accuracy.hpp"

#include "tests/catch.hpp"

namespace foretrain::test {

namespace {

/// A step of a group.
Comparison step(const char* name, double measured, double predicted, const char* group = "g") {
  return {name, group, "step_time", measured, predicted};
}

Comparison memory(const char* name, double measured, double predicted) {
  return {name, "g", "memory_per_gpu", measured, predicted};
}

}  // namespace

TEST_CASE("Statistics of known errors") {
  // Errors: 110/100 − 1 = +10 %, 190/200 − 1 = −5 %, 60/100 − 1 = −40 %.
  const ErrorStatistics s =
      error_statistics({step("a", 100.0, 110.0), step("b", 200.0, 190.0), step("c", 100.0, 60.0)});
  CHECK(s.n == 3);
  CHECK(s.mape == Approx((0.10 + 0.05 + 0.40) / 3.0));
  CHECK(s.median_error == Approx(0.10));
  CHECK(s.bias == Approx((0.10 - 0.05 - 0.40) / 3.0));
  CHECK(s.worst == Approx(-0.40));
  CHECK(s.worst_case == "c");
  CHECK(!s.coverage);
  CHECK(error_statistics({}).n == 0);
}

TEST_CASE("Coverage counts those that have an interval") {
  // One of two intervals holds its measurement; memory has none.
  std::vector<Comparison> comparisons = {step("a", 100.0, 110.0), step("b", 200.0, 120.0), memory("c", 100.0, 60.0)};
  comparisons[0].covered = true;
  comparisons[1].covered = false;
  CHECK(error_statistics(comparisons).coverage == 0.5);
}

TEST_CASE("Groups are kept apart, in order of appearance") {
  const AccuracyReport report = accuracy_report(
      {step("a", 1.0, 2.0, "second"), step("b", 1.0, 1.5, "first"), step("c", 1.0, 1.0, "second")}, {}, 0);
  REQUIRE(report.groups.size() == 2);
  CHECK(report.groups[0].name == "second");
  CHECK(report.groups[0].statistics.mape == Approx(0.5));  // 100 % and 0 %
  CHECK(report.groups[1].statistics.mape == Approx(0.5));
  CHECK(report.overall.mape == Approx(0.5));  // 100 %, 50 % and 0 %
  CHECK(accuracy_report({}, {}, 2).groups.empty());
}

TEST_CASE("An anchor takes one factor from the first cases of each group, which leave the errors") {
  // Twice as slow as predicted in both anchors (factor 2): the third case, predicted 3 s, becomes 6 s beside 5 s
  // measured. Memory neither anchors nor is scaled.
  const AccuracyReport report =
      accuracy_report({memory("a", 10.0, 30.0), step("a", 2.0, 1.0), step("b", 4.0, 2.0), step("c", 5.0, 3.0)}, {}, 2);
  CHECK(report.anchored == 2);
  REQUIRE(report.cases.size() == 2);
  CHECK(report.cases[0].predicted == 30.0);
  CHECK(report.cases[1].predicted == Approx(6.0));
  REQUIRE(report.groups.size() == 2);
  CHECK(report.groups[0].name == "g memory");
  CHECK(report.groups[1].factor == Approx(2.0));
  CHECK(report.memory.mape == Approx(2.0));  // 30 beside 10
  CHECK(report.times.mape == Approx(0.2));   // 6 beside 5
  // A group that has only anchors has no errors left.
  const AccuracyReport anchors = accuracy_report({step("a", 2.0, 1.0)}, {}, 3);
  CHECK(anchors.overall.n == 0);
  CHECK(anchors.groups[0].factor == Approx(2.0));
  CHECK_THAT(to_text(anchors), Catch::Contains("Scale factors of 1 case, one per group"));
}

TEST_CASE("A rate is scored as the time that it stands for, so that both ways to be wrong weigh the same") {
  // Measured 100 a second. Twice as fast is half the time: −50 %; half as fast is twice the time: +100 %. Memory is
  // compared as it is.
  const auto error = [](const char* quantity, double measured, double predicted) {
    return Comparison{"case", "group", quantity, measured, predicted}.error();
  };
  for (const char* rate : {"samples_per_second", "tokens_per_second", "bus_bandwidth"}) {
    CHECK(error(rate, 100.0, 200.0) == Approx(-0.5));
    CHECK(error(rate, 100.0, 50.0) == Approx(1.0));
  }
  CHECK(error("time", 1.0, 2.0) == Approx(1.0));
  CHECK(error("memory_per_gpu", 100.0, 200.0) == Approx(1.0));
}

}  // namespace foretrain::test

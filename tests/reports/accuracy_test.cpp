#include "reports/measured/accuracy.hpp"

#include "tests/catch.hpp"

namespace foretrain::test {

TEST_CASE("Statistics of known errors") {
  // Errors: 110/100 − 1 = +10 %, 190/200 − 1 = −5 %, 60/100 − 1 = −40 %.
  const ErrorStatistics s = error_statistics({{"a", "g", "step_time", 100.0, 110.0},
                                              {"b", "g", "step_time", 200.0, 190.0},
                                              {"c", "g", "step_time", 100.0, 60.0}});
  CHECK(s.n == 3);
  CHECK(s.mape == Approx((0.10 + 0.05 + 0.40) / 3.0));
  CHECK(s.median_error == Approx(0.10));
  CHECK(s.bias == Approx((0.10 - 0.05 - 0.40) / 3.0));
  CHECK(s.worst == Approx(-0.40));
  CHECK(s.worst_case == "c");
}

TEST_CASE("Coverage counts those that have an interval") {
  // One of two intervals holds its measurement; memory has none.
  const ErrorStatistics s = error_statistics({{"a", "g", "step_time", 100.0, 110.0, true},
                                              {"b", "g", "step_time", 200.0, 120.0, false},
                                              {"c", "g", "memory_per_gpu", 100.0, 60.0}});
  REQUIRE(s.coverage);
  CHECK(*s.coverage == Approx(0.5));
  CHECK(!error_statistics({{"c", "g", "memory_per_gpu", 100.0, 60.0}}).coverage);
}

TEST_CASE("No comparisons, no errors") {
  CHECK(error_statistics({}).n == 0);
  CHECK(accuracy_report({}, {}, 2).groups.empty());
}

TEST_CASE("Groups are kept apart, in order of appearance") {
  const AccuracyReport report = accuracy_report({{"a", "second", "step_time", 1.0, 2.0},
                                                 {"b", "first", "step_time", 1.0, 1.5},
                                                 {"c", "second", "step_time", 1.0, 1.0}},
                                                {}, 0);
  REQUIRE(report.groups.size() == 2);
  CHECK(report.groups[0].name == "second");
  CHECK(report.groups[0].statistics.mape == Approx(0.5));  // 100 % and 0 %
  CHECK(report.groups[1].statistics.mape == Approx(0.5));
  CHECK(report.overall.mape == Approx(0.5));  // 100 %, 50 % and 0 %
}

TEST_CASE("An anchor takes one factor from the first cases of each group, which leave the errors") {
  // Twice as slow as predicted in both anchors (factor 2): the third case, predicted 3 s, becomes 6 s beside 5 s
  // measured.
  const AccuracyReport report = accuracy_report(
      {{"a", "g", "step_time", 2.0, 1.0}, {"b", "g", "step_time", 4.0, 2.0}, {"c", "g", "step_time", 5.0, 3.0}}, {}, 2);
  CHECK(report.anchored == 2);
  REQUIRE(report.cases.size() == 1);
  CHECK(report.cases[0].predicted == Approx(6.0));
  CHECK(report.groups[0].factor == Approx(2.0));
  CHECK(report.overall.bias == Approx(0.2));
}

TEST_CASE("The text names the groups that have a factor, and no others") {
  const AccuracyReport report = accuracy_report({{"a", "twice", "step_time", 2.0, 1.0},
                                                 {"b", "twice", "step_time", 5.0, 3.0},
                                                 {"c", "memory", "memory_per_gpu", 5.0, 3.0}},
                                                {}, 1);
  const std::string text = to_text(report);
  INFO(text);
  CHECK_THAT(text, Catch::Contains("1 case was spent on one factor per group") && Catch::Contains("twice × 2.000"));
  CHECK_THAT(text, !Catch::Contains("memory ×"));
  CHECK_THAT(to_text(accuracy_report({{"a", "g", "step_time", 2.0, 1.0}}, {}, 0)),
             !Catch::Contains("factor per group"));
}

TEST_CASE("A group that has only anchors has no errors left") {
  const AccuracyReport report = accuracy_report({{"a", "g", "step_time", 2.0, 1.0}}, {}, 3);
  CHECK(report.overall.n == 0);
  CHECK(report.groups[0].factor == Approx(2.0));
}

TEST_CASE("What runs of its model have anchored neither anchors its group nor is scaled again") {
  std::vector<Comparison> comparisons = {
      {"a", "g", "step_time", 2.0, 1.0}, {"b", "g", "step_time", 3.0, 1.0}, {"c", "g", "step_time", 6.0, 3.0}};
  comparisons[0].anchored = true;
  const AccuracyReport report = accuracy_report(comparisons, {}, 1);
  CHECK(report.groups[0].factor == Approx(3.0));  // that of b
  REQUIRE(report.cases.size() == 2);
  CHECK(report.cases[0].predicted == 1.0);
  CHECK(report.cases[1].predicted == Approx(9.0));
}

TEST_CASE("Memory neither anchors nor is scaled") {
  const AccuracyReport report = accuracy_report({{"a", "g", "memory_per_gpu", 10.0, 20.0},
                                                 {"a", "g", "step_time", 2.0, 1.0},
                                                 {"b", "g", "memory_per_gpu", 10.0, 30.0}},
                                                {}, 1);
  CHECK(report.anchored == 1);
  REQUIRE(report.cases.size() == 2);
  CHECK(report.cases[0].predicted == 20.0);
  CHECK(report.cases[1].predicted == 30.0);
}

TEST_CASE("A rate is scored as the time that it stands for, so that both ways to be wrong weigh the same") {
  // Measured 100 a second. Twice as fast is half the time: −50 %; half as fast is twice the time: +100 %. Steps of the
  // same times say the same, memory is compared as it is.
  const auto error = [](const char* quantity, double measured, double predicted) {
    return Comparison{"case", "group", quantity, measured, predicted}.error();
  };
  for (const char* rate : {"samples_per_second", "tokens_per_second", "bus_bandwidth"}) {
    CHECK(error(rate, 100.0, 200.0) == Approx(-0.5));
    CHECK(error(rate, 100.0, 50.0) == Approx(1.0));
    CHECK(error(rate, 100.0, 200.0) == Approx(error("step_time", 1.0 / 100.0, 1.0 / 200.0)));
  }
  CHECK(error("time", 1.0, 2.0) == Approx(1.0));
  CHECK(error("memory_per_gpu", 100.0, 200.0) == Approx(1.0));
}

}  // namespace foretrain::test

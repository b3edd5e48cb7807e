#include "reports/explain/comparison.hpp"

#include "tests/catch.hpp"
#include "tests/reports/sample_results.hpp"

namespace foretrain::test {

namespace {

/// A step without an interval: 60 s of computing and 20 s of communication for 8 samples, that is 10 s for one.
Result step_of_eight_samples() {
  Result result;
  result.scenario = "eight samples";
  TrainResult& train = result.work.emplace<TrainResult>();
  train.step_time = Seconds(80.0);
  train.samples_per_second = 8.0 / 80.0;
  train.breakdown.compute = Seconds(60.0);
  train.breakdown.exposed_communication = Seconds(20.0);
  return result;
}

/// Twice the batch in a step of 64 s, 4 s for a sample: computing takes 3.5, communication 0.5.
Result step_of_sixteen_samples() {
  Result result = step_of_eight_samples();
  result.scenario = "sixteen samples";
  result.train()->step_time = Seconds(64.0);
  result.train()->samples_per_second = 16.0 / 64.0;
  result.train()->breakdown.compute = Seconds(56.0);
  result.train()->breakdown.exposed_communication = Seconds(8.0);
  return result;
}

}  // namespace

TEST_CASE("Steps with different batches are compared by their samples") {
  // In 64 s 16 samples instead of 8 in 80 s: 2.5 times as fast, not 80 / 64.
  CHECK(speedup_of(step_of_sixteen_samples(), step_of_eight_samples()).factor == Approx(2.5));
  // If one of them does not train: by their times.
  Result half = collective();
  half.collective()->time = Seconds(0.03);
  CHECK(speedup_of(collective(), half).factor == Approx(2.0));
}

TEST_CASE("A comparison's interval takes the errors of both predictions as independent") {
  Result result = step_of_sixteen_samples(), reference = step_of_eight_samples();
  // Without intervals there is none; with those of a third and a quarter to each side: 0.3 and 0.4 in logarithms, 0.5.
  CHECK(speedup_of(result, reference).low == speedup_of(result, reference).high);
  result.uncertainty_low = Seconds(64.0 * std::exp(-0.3));
  result.uncertainty_high = Seconds(64.0 * std::exp(0.3));
  reference.uncertainty_low = Seconds(80.0 * std::exp(-0.4));
  reference.uncertainty_high = Seconds(80.0 * std::exp(0.4));
  const Speedup speedup = speedup_of(result, reference);
  CHECK(speedup.low == Approx(2.5 * std::exp(-0.5)));
  CHECK(speedup.high == Approx(2.5 * std::exp(0.5)));
  CHECK_THAT(comparison_text({reference, result}),
             Catch::Contains("2.5 times the samples/s of [1] (90 % interval 1.52–4.12 if errors"));
  CHECK_THAT(comparison_text({result, reference}),
             Catch::Contains("0.4 times the samples/s of [1] (90 % interval 0.243–0.659 if errors"));
  // A reference that may be late, but not early, makes the speedup greater alone: 0.3 down, 0.5 up.
  reference.uncertainty_low = Seconds(80.0);
  const Speedup uneven = speedup_of(result, reference);
  CHECK(uneven.low == Approx(2.5 * std::exp(-0.3)));
  CHECK(uneven.high == Approx(2.5 * std::exp(0.5)));
}

TEST_CASE("What makes the difference is reported in shares of the time that a sample takes") {
  const Result eight = step_of_eight_samples(), sixteen = step_of_sixteen_samples();
  // A sample: computing 7.5 -> 3.5 s of 10 s, communication 2.5 -> 0.5 s; the other way round +4 and +2 of 4 s.
  CHECK_THAT(comparison_text({eight, sixteen}),
             Catch::Contains("-60.0 % (compute -40.0,") && Catch::Contains("communication -20.0"));
  CHECK_THAT(comparison_text({sixteen, eight}),
             Catch::Contains("+150.0 % (compute") && Catch::Contains("communication +50.0"));
}

TEST_CASE("Parts that differ by a thousandth of a sample's time are reported") {
  Result result = step_of_eight_samples();
  CHECK_THAT(comparison_text({result, result}), Catch::Contains("[2]: 1 times the samples/s of [1].\n"));
  // Of 10 s for a sample: 0.012 s more or less computing, 0.009 s less communication.
  result.train()->breakdown.exposed_communication -= Seconds(8.0 * 0.009);
  result.train()->breakdown.compute += Seconds(8.0 * 0.012);
  CHECK_THAT(comparison_text({step_of_eight_samples(), result}), Catch::Contains("(compute +0.1\n  percentage"));
  result.train()->breakdown.compute -= Seconds(8.0 * 0.024);
  CHECK_THAT(comparison_text({step_of_eight_samples(), result}), Catch::Contains("(compute -0.1\n  percentage"));
}

}  // namespace foretrain::test

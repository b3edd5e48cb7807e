// A stage's fit is kept if it predicts unseen points better: on MADE-UP points of a line.
#include "validate/fit/gpu_fit.hpp"

#include "model/cost/calibration.hpp"
#include "model/scenario/hardware/calibration_reader.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// A kernel of `size` microseconds and the time of its start.
Seconds time_of(double size, const Calibration& calibration) {
  return Seconds((size + calibration.streaming.kernel_us) * 1e-6);
}

std::vector<Observation> points_of(double kernel_us, double noise, int count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0.0, 1.0);
  Calibration truth = load_default_calibration();
  truth.streaming.kernel_us = kernel_us;
  std::vector<Observation> points;
  for (int i = 0; i < count; ++i) {
    const double size = 0.5 * (i + 1);
    points.push_back({"point", "line", time_of(size, truth) * std::exp(noise * normal(random)),
                      [size](const Calibration& calibration) { return time_of(size, calibration); }});
  }
  return points;
}

StageTrial trial_of(const std::vector<Observation>& points, const std::vector<Observation>& held_out = {}) {
  const Calibration start = load_default_calibration();
  return try_stage(points, held_out, {"streaming.kernel_us"}, start, start);
}

}  // namespace

TEST_CASE("What points say that a fit has not seen decides: a better constant is kept, scatter is not") {
  const StageTrial better = trial_of(points_of(6.0, 0.02, 12, 1));
  CHECK(better.adopted);
  CHECK(better.judged == 12);  // each was left out once
  CHECK_FALSE(better.held_out);
  CHECK(better.fitted < 0.03);  // noise of 2 %
  CHECK(better.published > 0.2);
  // Around the published constant, a factor of e to either side: a fit moves, but to nothing.
  const double published = load_default_calibration().streaming.kernel_us;
  int kept = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) kept += trial_of(points_of(published, 1.0, 8, seed)).adopted ? 1 : 0;
  CHECK(kept <= 12);  // one standard error above zero: fewer than a third, at random
}

TEST_CASE("Points that a suite held out judge, where there are five of them") {
  const std::vector<Observation> points = points_of(6.0, 0.02, 12, 1);
  const StageTrial enough = trial_of(points, points_of(6.0, 0.02, 5, 2));
  CHECK(enough.held_out);
  CHECK(enough.judged == 5);
  CHECK(enough.adopted);
  CHECK_FALSE(trial_of(points, points_of(6.0, 0.02, 4, 2)).held_out);
  // A machine that was measured in two states: what was held out contradicts what was fitted.
  const double published = load_default_calibration().streaming.kernel_us;
  const StageTrial contradicted = trial_of(points, points_of(published, 0.02, 6, 3));
  CHECK_FALSE(contradicted.adopted);
  CHECK_THAT(verdict(contradicted), Catch::Contains("6 points left out no better"));
}

TEST_CASE("Most points left out better and their mean error worse: not kept") {
  // Eight points a third too fast as published and right as fitted; one, twelve times as long as measured instead of
  // eight.
  std::vector<Observation> held_out = points_of(6.0, 0.0, 8, 2);
  const std::vector<Observation> outlier = points_of(0.02, 0.0, 1, 3);
  held_out.push_back(outlier.front());
  const StageTrial trial = trial_of(points_of(6.0, 0.0, 12, 1), held_out);
  CHECK(trial.fitted > trial.published);
  CHECK_FALSE(trial.adopted);
  held_out.pop_back();
  CHECK(trial_of(points_of(6.0, 0.0, 12, 1), held_out).adopted);
}

TEST_CASE("Points are left out by fifths, so that what one fifth alone tells is judged by nothing") {
  // Ten points, of which the first and the sixth depend on the constant: each knows what the other needs, and the same
  // fifth has both. The fit to the other eight leaves the constant as published.
  std::vector<Observation> points = points_of(6.0, 0.0, 10, 1);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Seconds measured = points[i].measured;
    if (i % 5 != 0) points[i].predict = [measured](const Calibration&) { return measured; };
  }
  const StageTrial together = trial_of(points);
  REQUIRE_FALSE(together.fit.constants.empty());
  CHECK(together.judged == 10);
  CHECK(together.fitted == together.published);
  CHECK_FALSE(together.adopted);
  // In different fifths each is predicted by the other.
  std::swap(points[5], points[6]);
  const StageTrial apart = trial_of(points);
  CHECK(apart.fitted < 0.01 * apart.published);
  CHECK(apart.adopted);
}

TEST_CASE("One point judges nothing") {
  const StageTrial one = trial_of(points_of(6.0, 0.0, 1, 1));
  CHECK_FALSE(one.adopted);
  CHECK(one.judged == 0);
  CHECK_THAT(verdict(one), Catch::Contains("no point could be left out"));
}

TEST_CASE("Gains that scatter as much as they are large are no gains, even ones are") {
  // A constant that every point says alike: all are predicted better by as much, and gains do not scatter at all.
  std::vector<Observation> held_out = points_of(6.0, 0.0, 5, 2);
  for (std::size_t i = 1; i < held_out.size(); ++i) held_out[i] = held_out[0];
  CHECK(trial_of(points_of(6.0, 0.0, 12, 1), held_out).adopted);
}

#include "validate/measure/sampling.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Plays recorded values, again from the start when they are over; counts how many were asked for.
struct Recorded {
  std::vector<double> values;
  int calls = 0;
  double operator()() { return values[static_cast<std::size_t>(calls++) % values.size()]; }
};

Sampled play(Recorded& recorded, const StoppingRule& rule) {
  return sample([&] { return recorded(); }, rule);
}

StoppingRule patient() { return {.warm_up = 2, .least = 5, .most = 50, .target = 0.01, .budget = Seconds(1000.0)}; }

std::vector<double> numbers(int from, int to) {
  std::vector<double> out;
  for (int i = from; i <= to; ++i) out.push_back(i);
  return out;
}

}  // namespace

TEST_CASE("The median's uncertainty comes from ranks around it", "[measure]") {
  // 1 … 100: the ranks n/2 ± 0.98·√n are 40.2 and 59.8, so the 41st and the 60th value: 41 and 60. Half their distance
  // over the median of 50.5.
  CHECK(median_uncertainty(numbers(1, 100)) == Approx(9.5 / 50.5));
  // Six values are the first to have an interval, from their smallest to their largest: (6 − 1) / 2 / 3.5.
  CHECK(median_uncertainty(numbers(1, 6)) == Approx(2.5 / 3.5));
  CHECK(std::isinf(median_uncertainty(numbers(1, 5))));
  // The order in which they came does not matter.
  CHECK(median_uncertainty({6, 1, 4, 3, 2, 5}) == median_uncertainty(numbers(1, 6)));
}

TEST_CASE("A constant time is known after six values", "[measure]") {
  // Fewer have no interval; six equal ones have one of no width. The two to warm up are not among them.
  Recorded constant{{2.0}};
  const Sampled samples = play(constant, patient());
  CHECK(samples.values.size() == 6);
  CHECK(constant.calls == 8);
  CHECK(samples.spread() == 0.0);
}

TEST_CASE("A noisy time is repeated until its median is known well enough", "[measure]") {
  // Values within ±10 % whose interval narrows as 1/√n: at a target of 5 % the last value is the one that reached it.
  Recorded noisy{{1.0, 1.08, 0.94, 1.04, 0.9, 1.02, 0.96, 1.1, 0.98, 1.06, 0.92}};
  StoppingRule rule = patient();
  rule.target = 0.05;
  std::vector<double> values = play(noisy, rule).values;
  CHECK(values.size() > 6);
  CHECK(values.size() < 50);
  CHECK(median_uncertainty(values) <= 0.05);
  values.pop_back();
  CHECK(median_uncertainty(values) > 0.05);
}

TEST_CASE("A time that drifts, or jumps between two values, ends at the most repetitions", "[measure]") {
  Recorded drifting{numbers(100, 200)};  // each value another: the interval stays wide
  CHECK(play(drifting, patient()).values.size() == 50);
  Recorded jumping{{0.9, 1.1}};  // the interval always reaches from one to the other, a fifth of the median
  CHECK(play(jumping, patient()).values.size() == 50);
}

TEST_CASE("Time that is up ends repetitions, but not before the fewest are made", "[measure]") {
  Recorded jumping{{0.9, 1.1}};
  StoppingRule rule = patient();
  rule.budget = Seconds(0.0);
  CHECK(play(jumping, rule).values.size() == 5);
}

TEST_CASE("The spread is the distance of the quartiles over the median", "[measure]") {
  // Of 1 to 5 the quartiles are 2 and 4, the median 3.
  CHECK(Sampled{.values = {5, 1, 4, 2, 3}}.spread() == Approx(2.0 / 3.0));
}

TEST_CASE("A rule that says nothing of it takes a median for known that one per cent of it surrounds", "[measure]") {
  // Of six values the interval reaches from the smallest to the largest: half of 1.6 or of 2.4 of 100.
  Recorded close{{100.0, 100.8, 99.2, 100.0, 100.0, 100.0}};
  CHECK(play(close, {.budget = Seconds(1000.0)}).values.size() == 6);
  Recorded apart{{100.0, 101.2, 98.8, 100.0, 100.0, 100.0}};
  CHECK(play(apart, {.budget = Seconds(1000.0)}).values.size() > 6);
  CHECK(StoppingRule{}.budget == Seconds(1.0));
}

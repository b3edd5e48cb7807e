// How far predictions are off, by family and group: errors made by hand.
#include "validate/fit/fit_errors.hpp"

#include <cmath>

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

/// Points of one family: so many are held out and take half as long as predicted, the others are right.
std::vector<PointPair> pairs_with(int held_out, int others) {
  std::vector<PointPair> pairs;
  for (int i = 0; i < held_out; ++i) pairs.push_back({"held out", "group", "copy", true, Seconds(1.0), Seconds(2.0)});
  for (int i = 0; i < others; ++i) pairs.push_back({"other", "group", "copy", false, Seconds(1.0), Seconds(1.0)});
  return pairs;
}

}  // namespace

TEST_CASE("Five points that are held out say how far predictions spread, fewer beside all others") {
  const double twice = std::log(2.0) / four_of_five;
  CHECK(spreads_of(pairs_with(5, 15)).at("copy") == Approx(twice));
  // Four of twenty: the quantile of 80 % lies at 0.8 · 19 = 15.2, a fifth of the way from the last right one to the
  // first that is off.
  CHECK(spreads_of(pairs_with(4, 16)).at("copy") == Approx(0.2 * twice));
}

TEST_CASE("Errors are means of each group, of points held out apart from others, with the worst point's name") {
  std::vector<PointPair> pairs = pairs_with(1, 1);
  pairs.push_back({"half", "group", "copy", true, Seconds(1.0), Seconds(0.5)});
  pairs.push_back({"alike", "group", "copy", true, Seconds(1.0), Seconds(2.0)});  // no worse than the first
  const std::vector<PointErrors> errors = errors_of(pairs);
  REQUIRE(errors.size() == 2);
  const PointErrors& held_out = errors[0].held_out ? errors[0] : errors[1];
  CHECK(held_out.points == 3);
  CHECK(held_out.mape == Approx((1.0 + 0.5 + 1.0) / 3.0));
  CHECK(held_out.bias == Approx((1.0 - 0.5 + 1.0) / 3.0));
  CHECK(held_out.worst == Approx(1.0));
  CHECK(held_out.worst_point == "held out");
}

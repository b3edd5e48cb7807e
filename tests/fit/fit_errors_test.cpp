// Errors of a calibration, for pairs whose errors are round numbers.
#include "validate/fit/fit_errors.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

namespace {

PointPair pair_of(const std::string& name, double predicted, bool held_out = false) {
  return {name, "group", "matmul", held_out, Seconds(2.0), Seconds(2.0 * predicted)};
}

}  // namespace

TEST_CASE("A group's mean, bias and worst point are of predictions over measurements") {
  const std::vector<PointErrors> errors =
      errors_of({pair_of("exact", 1.0), pair_of("half", 0.5), pair_of("more", 1.3), pair_of("apart", 1.1, true)});
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].points == 3);
  CHECK(errors[0].mape == Approx(0.8 / 3.0));
  CHECK(errors[0].bias == Approx(-0.2 / 3.0));
  CHECK(errors[0].worst == Approx(-0.5));
  CHECK(errors[0].worst_point == "half");
  CHECK(errors[1].held_out);
  CHECK(errors[1].bias == Approx(0.1));
  // One that is exact is the worst of its own.
  CHECK(errors_of({pair_of("exact", 1.0)}).front().worst_point == "exact");
  // Of two as far off the first.
  CHECK(errors_of({pair_of("a", 1.5), pair_of("b", 0.5)}).front().worst_point == "a");
}

TEST_CASE("A bar is held by points held out, and by all of them where none was") {
  std::vector<PointErrors> errors = {{"a", "matmul", false, 30, 0.02, 0.0, 0.0, ""},
                                     {"b", "matmul", false, 10, 0.06, 0.0, 0.0, ""},
                                     {"c", "attention", false, 10, 0.5, 0.0, 0.0, ""}};
  AccuracyBar products = bars_of(errors).front();
  CHECK_FALSE(products.held_out);
  CHECK(products.points == 40);
  CHECK(products.mape == Approx(0.03));  // three quarters at 2 %, a quarter at 6 %
  CHECK(products.met());
  errors.push_back({"b", "matmul", true, 2, 0.06, 0.0, 0.0, ""});
  products = bars_of(errors).front();
  CHECK(products.held_out);
  CHECK(products.points == 2);
  CHECK_FALSE(products.met());  // 5 % is the bar
  CHECK(bars_of(errors)[2].points == 0);
}

TEST_CASE("The spread of a family is of points held out where there are five") {
  std::vector<PointPair> pairs;
  for (int i = 0; i < 20; ++i) pairs.push_back(pair_of("fitted", std::exp(i % 2 == 0 ? 0.1 : -0.1)));
  for (int i = 0; i < 4; ++i) pairs.push_back(pair_of("apart", std::exp(0.2), true));
  CHECK(spreads_of(pairs).at("matmul") == Approx(0.1 / four_of_five));
  pairs.push_back(pair_of("apart", std::exp(-0.2), true));
  CHECK(spreads_of(pairs).at("matmul") == Approx(0.2 / four_of_five));
}

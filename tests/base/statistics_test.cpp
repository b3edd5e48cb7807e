#include "model/base/statistics.hpp"

#include "model/base/error.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("A median is the middle value, or the mean of the two middle ones") {
  CHECK(median({3.0, 1.0, 2.0}) == 2.0);
  CHECK(median({4.0, 1.0, 2.0, 3.0}) == 2.5);
  CHECK(median({7.0}) == 7.0);
  CHECK_THROWS_AS(median({}), InternalError);
}

TEST_CASE("Quantiles lie between values as between points of a line") {
  // Four values are points at 0, 1/3, 2/3 and 1: a quarter is three quarters of the way from the first to the second.
  CHECK(quantile({40.0, 10.0, 20.0, 30.0}, 0.25) == Approx(17.5));
  CHECK(quantile({40.0, 10.0, 20.0, 30.0}, 0.75) == Approx(32.5));
  CHECK(quantile({40.0, 10.0}, 0.0) == 10.0);
  CHECK(quantile({40.0, 10.0}, 1.0) == 40.0);
  CHECK_THROWS_AS(quantile({}, 0.5), InternalError);
}

TEST_CASE("the normal distribution's quantiles are those of its tables, and its inverse's") {
  CHECK(normal_quantile(0.5) == Approx(0.0).margin(1e-9));
  CHECK(normal_quantile(0.975) == Approx(1.959963985));
  CHECK(normal_quantile(0.001) == Approx(-3.090232306));
  for (const double z : {-4.0, -1.0, 0.3, 2.0}) CHECK(normal_quantile(normal_cumulative(z)) == Approx(z));
}

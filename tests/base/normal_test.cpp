#include "model/base/statistics.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("the normal distribution's quantiles are those of its tables, and its inverse's") {
  CHECK(normal_quantile(0.5) == Approx(0.0).margin(1e-9));
  CHECK(normal_quantile(0.975) == Approx(1.959963985));
  CHECK(normal_quantile(0.001) == Approx(-3.090232306));
  for (const double z : {-4.0, -1.0, 0.3, 2.0}) CHECK(normal_quantile(normal_cumulative(z)) == Approx(z));
}

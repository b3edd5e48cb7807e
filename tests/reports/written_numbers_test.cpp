// Numbers as people read them, and draws whose sums are known.
#include "reports/print/number.hpp"
#include "reports/studies/plan_confidence.hpp"
#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("Thousands have commas, from the fourth digit on, where a number is whole or stands before its unit") {
  CHECK(grouped("999") == "999");
  CHECK(grouped("1000") == "1,000");
  CHECK(grouped("1234567") == "1,234,567");
  CHECK(grouped("123456.789 GB") == "123,456.789 GB");
  CHECK(grouped("1000x") == "1000x");
  CHECK(counted(1, "run") == "1 run");
  CHECK(counted(0, "run") == "0 runs");
  CHECK(counted(1500, "run") == "1,500 runs");
  CHECK(counted(1, "run", "is", "are") == "1 run is");
  CHECK(counted(2, "run", "is", "are") == "2 runs are");
}

TEST_CASE("A plain number has as many digits as are asked for, and an exponent from 10^15 on") {
  CHECK(plain_number(123456789.0, 3) == "123,000,000");
  CHECK(plain_number(-123456789.0, 3) == "-123,000,000");
  CHECK(plain_number(12345.6, 6) == "12,345.6");
  CHECK(plain_number(0.00012, 3) == "0.00012");
  CHECK(plain_number(1e15, 3) == "1e+15");
  CHECK(plain_number(9.99e14, 3) == "999,000,000,000,000");
}

TEST_CASE("Deviates are the middles of as many equal parts of a normal distribution, each once") {
  CHECK(normal_deviates(3, 1).front() == Approx(0.0).margin(1e-12));
  std::vector<double> deviates = normal_deviates(7, 101);
  CHECK(deviates != normal_deviates(8, 101));  // in another order
  std::ranges::sort(deviates);
  for (std::size_t i = 0; i < deviates.size(); ++i) {
    CHECK(deviates[i] == Approx(-deviates[deviates.size() - 1 - i]).margin(1e-9));
    // Below the middle of the part i lie i + 1/2 of 101 parts.
    CHECK(0.5 * std::erfc(-deviates[i] / std::sqrt(2.0)) ==
          Approx((static_cast<double>(i) + 0.5) / 101.0).margin(1e-6));
  }
}

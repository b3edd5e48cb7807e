#include "model/base/spread.hpp"

#include "tests/catch.hpp"

using namespace foretrain;

TEST_CASE("factors have mean 1 and the stated standard deviation, and are lognormal") {
  for (const double spread : {0.05, 0.2, 0.5}) {
    double sum = 0.0, squares = 0.0, logs = 0.0;
    int below = 0;
    constexpr int n = 40'000;
    for (int i = 0; i < n; ++i) {
      const double factor = compute_factor(i % 200, i / 200, spread);
      REQUIRE(factor > 0.0);
      sum += factor;
      squares += factor * factor;
      logs += std::log(factor);
      // The median of a lognormal of mean 1 is 1/√(1 + spread²).
      below += factor < 1.0 / std::sqrt(1.0 + spread * spread) ? 1 : 0;
    }
    const double mean = sum / n;
    // Of 40,000 samples the mean's standard error is spread/200; four of them, and 3 % for the deviation.
    CHECK(std::abs(mean - 1.0) < 4.0 * spread / 200.0);
    CHECK(std::sqrt(squares / n - mean * mean) == Approx(spread).epsilon(0.03));
    CHECK(logs / n == Approx(-0.5 * std::log1p(spread * spread)).margin(4.0 * spread / 200.0));
    CHECK(below == Approx(n / 2.0).epsilon(0.02));
  }
}

TEST_CASE("without spread every factor is exactly 1, and a factor is a function of worker and iteration alone") {
  CHECK(compute_factor(3, 7, 0.0) == 1.0);
  CHECK(compute_factor(3, 7, 0.1) == compute_factor(3, 7, 0.1));
  CHECK(compute_factor(3, 7, 0.1) != compute_factor(7, 3, 0.1));
  // Written down once: other machines must find the same bits.
  CHECK(compute_factor(1, 2, 0.05) == 0x1.e55cccb932p-1);
}

TEST_CASE("the largest of some factors is that of the slowest worker, to the bit") {
  double largest = 0.0;
  for (int worker = -700; worker < 300; ++worker) largest = std::max(largest, compute_factor(worker, 5, 0.07));
  CHECK(largest_factor(-700, 1000, 5, 0.07) == largest);
  CHECK(largest_factor(0, 1000, 5, 0.0) == 1.0);
}

TEST_CASE("the largest of very many factors has the distribution of the largest") {
  // 65,536 are drawn one by one, 65,537 at once: over 200 iterations both have the same quantiles.
  std::vector<double> drawn, at_once, of_a_million;
  for (int i = 0; i < 200; ++i) {
    drawn.push_back(std::log(largest_factor(0, 65'536, i, 0.1)));
    at_once.push_back(std::log(largest_factor(0, 65'537, i, 0.1)));
    of_a_million.push_back(std::log(largest_factor(0, 1'000'000, i, 0.1)));
  }
  for (std::vector<double>* all : {&drawn, &at_once, &of_a_million}) std::ranges::sort(*all);
  // With a deviation of 0.025 among them: a quarter of that for each quantile of 200.
  for (const std::size_t quantile : {20, 50, 100, 150, 180}) {
    CHECK(at_once[quantile] == Approx(drawn[quantile]).margin(0.007));
  }
  // Medians by hand: ln 2 / n = y^12 / 12! but for smaller terms, which leaves y = 2.036 and 1.622 below the end of
  // the distribution at 6; the factor's logarithm is 0.09975 (6 - y) - 0.00498.
  CHECK(at_once[100] == Approx(0.390).margin(0.007));
  CHECK(of_a_million[100] == Approx(0.432).margin(0.007));
}

TEST_CASE("waiting times have mean 1, no memory, and the same bits everywhere") {
  std::uint64_t state = 1;
  double sum = 0.0;
  int longer = 0, much_longer = 0;
  constexpr int n = 40'000;
  for (int i = 0; i < n; ++i) {
    const double waited = next_waiting(state);
    REQUIRE(waited >= 0.0);
    sum += waited;
    longer += waited > 1.0 ? 1 : 0;
    much_longer += waited > 2.0 ? 1 : 0;
  }
  // The mean's standard error is 1/200. What has taken the mean already takes as long again as often as from the start.
  CHECK(sum / n == Approx(1.0).margin(0.02));
  CHECK(longer == Approx(n * std::exp(-1.0)).epsilon(0.02));
  CHECK(much_longer == Approx(longer * std::exp(-1.0)).epsilon(0.04));
  state = 1;
  std::uint64_t same = 1;
  const double uniform = next_uniform(same);
  CHECK(next_waiting(state) == Approx(-std::log1p(-uniform)).epsilon(1e-9));
}

TEST_CASE("the largest of so many normal deviates is, on average, what the integral over their distribution says") {
  // The integral of x over the density of the largest, n φ(x) Φ(x)^(n - 1), by the midpoints of 20,000 pieces.
  const auto integral = [](double n) {
    double sum = 0.0;
    constexpr double piece = 1e-3;
    for (double x = -10.0 + piece / 2; x < 10.0; x += piece) {
      const double density = std::exp(-x * x / 2.0) / std::sqrt(2.0 * std::acos(-1.0));
      sum += x * n * density * std::pow(0.5 * std::erfc(-x / std::sqrt(2.0)), n - 1.0) * piece;
    }
    return sum;
  };
  CHECK(expected_largest(1) == 0.0);
  CHECK(expected_largest(1 << 25) == expected_largest(1 << 20));
  for (int power = 0; power <= 20; ++power) {
    INFO("2^" << power);
    CHECK(expected_largest(1 << power) == Approx(integral(std::pow(2.0, power))).margin(1e-4));
  }
  // Between powers of two a straight line over the logarithm, a little below the curve.
  for (const int count : {3, 6, 12, 48, 100, 1000, 700'000}) {
    INFO(count);
    const double curve = integral(count);
    CHECK(expected_largest(count) <= curve + 1e-4);
    CHECK(expected_largest(count) > curve - 0.015);
  }
}

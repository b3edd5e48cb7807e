#include "model/base/spread.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "model/base/hash.hpp"

namespace foretrain {

namespace {

std::uint64_t seed_of(int first, int second) {
  std::uint64_t state = (static_cast<std::uint64_t>(first) << 32U) ^ static_cast<std::uint64_t>(second);
  return split_mix(state);
}

/// Irwin–Hall, see compute_factor().
double next_normal(std::uint64_t& state) {
  double normal = -6.0;
  for (int i = 0; i < 12; ++i) normal += next_uniform(state);
  return normal;
}

/// Probability that a deviate lies above 6 - y, y from 0 to 6: the sum over k of (-1)^k C(12, k) (y - k)^12 / 12!, as
/// long as y > k.
double tail_from(double y) {
  double sum = 0.0, ways = 1.0;
  for (int k = 0; y > k; ++k) {
    double power = 1.0;
    for (int i = 1; i <= 12; ++i) power *= (y - k) / i;
    sum += ways * power;
    ways *= -(12.0 - k) / (k + 1);
  }
  return sum;
}

/// The deviate above which others lie with probability `tail`, from 0 to 1/2.
double deviate_exceeded_by(double tail) {
  double low = 0.0, high = 6.0;
  for (int i = 0; i < 50; ++i) {
    const double middle = 0.5 * (low + high);
    (tail_from(middle) < tail ? low : high) = middle;
  }
  return 6.0 - low;
}

/// The largest deviate of so many workers; of very many one draw from the distribution of their largest.
double largest_normal(int first, int count, int iteration) {
  constexpr int most_drawn = 65'536;  // one by one they take a millisecond
  if (count > most_drawn) {
    std::uint64_t state = seed_of(first, iteration);
    return deviate_exceeded_by(next_waiting(state) / count);
  }
  double largest = -6.0;
  for (int worker = first; worker < first + count; ++worker) {
    std::uint64_t state = seed_of(worker, iteration);
    largest = std::max(largest, next_normal(state));
  }
  return largest;
}

/// Compilers and C libraries differ in last bits: 40 binary places are kept.
double without_last_bits(double x) { return std::round(x * 0x1.0p40) * 0x1.0p-40; }

}  // namespace

double next_uniform(std::uint64_t& state) { return static_cast<double>(split_mix(state) >> 11U) * 0x1.0p-53; }

double next_waiting(std::uint64_t& state) { return without_last_bits(-std::log1p(-next_uniform(state))); }

double uniform(int first, int second) {
  std::uint64_t state = seed_of(first, second);
  return next_uniform(state);
}

double compute_factor(int worker, int iteration, double spread) { return largest_factor(worker, 1, iteration, spread); }

double largest_factor(int first, int count, int iteration, double spread) {
  if (!(spread > 0.0)) return 1.0;
  const double variance = std::log1p(spread * spread);
  return without_last_bits(std::exp(std::sqrt(variance) * largest_normal(first, count, iteration) - variance / 2.0));
}

double expected_largest(int count) {
  // The integral of 1 - F(x)^n over x > 0 less that of F(x)^n over x < 0, F being the normal distribution.
  constexpr std::array<double, 21> of_powers = {0.0,    0.5642, 1.0294, 1.4236, 1.7660, 2.0697, 2.3437,
                                                2.5946, 2.8269, 3.0439, 3.2482, 3.4418, 3.6261, 3.8023,
                                                3.9714, 4.1341, 4.2911, 4.4430, 4.5903, 4.7332, 4.8723};
  if (count < 2) return 0.0;
  const auto power = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(count)) - 1);
  if (power + 1 >= of_powers.size()) return of_powers.back();
  const double beyond = static_cast<double>(count) / static_cast<double>(1U << power) - 1.0;
  return of_powers[power] + std::log1p(beyond) / std::log1p(1.0) * (of_powers[power + 1] - of_powers[power]);
}

}  // namespace foretrain

#include "model/base/spread.hpp"

#include <cmath>
#include <cstdint>

#include "model/base/hash.hpp"

namespace foretrain {

namespace {

std::uint64_t seed_of(int first, int second) {
  std::uint64_t state = (static_cast<std::uint64_t>(first) << 32U) ^ static_cast<std::uint64_t>(second);
  return split_mix(state);
}

/// From 0 to below 1.
double next_uniform(std::uint64_t& state) { return static_cast<double>(split_mix(state) >> 11U) * 0x1.0p-53; }

/// ln(1 + x) = 2 artanh(x / (2 + x)) for x from 0 to 1, where the argument is 1/3 at most: 20 terms are exact.
double log_of_one_plus(double x) {
  const double t = x / (2.0 + x);
  double power = t;
  double sum = 0.0;
  for (int n = 0; n < 20; ++n) {
    sum += power / (2 * n + 1);
    power *= t * t;
  }
  return 2.0 * sum;
}

/// exp(x) = exp(x / 16)^16; 14 terms are exact for |x| below 8.
double exponential(double x) {
  const double part = x / 16.0;
  double term = 1.0;
  double sum = 1.0;
  for (int n = 1; n < 14; ++n) {
    term *= part / n;
    sum += term;
  }
  for (int i = 0; i < 4; ++i) sum *= sum;
  return sum;
}

}  // namespace

double uniform(int first, int second) {
  std::uint64_t state = seed_of(first, second);
  return next_uniform(state);
}

double compute_factor(int worker, int iteration, double spread) {
  if (!(spread > 0.0)) return 1.0;
  std::uint64_t state = seed_of(worker, iteration);
  double normal = -6.0;
  for (int i = 0; i < 12; ++i) normal += next_uniform(state);
  const double variance = log_of_one_plus(spread * spread);
  // Compilers may fuse a multiplication with an addition, which changes last bits: 40 binary places are kept.
  return std::round(exponential(std::sqrt(variance) * normal - variance / 2.0) * 0x1.0p40) * 0x1.0p-40;
}

}  // namespace foretrain

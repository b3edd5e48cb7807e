#include "model/base/normal.hpp"

#include <cmath>
#include <numbers>

namespace foretrain {

double normal_cumulative(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// By bisection of the distribution function.
double normal_quantile(double probability) {
  double low = -10.0, high = 10.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (normal_cumulative(middle) < probability ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace foretrain

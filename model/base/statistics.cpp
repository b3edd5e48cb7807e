#include "model/base/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "model/base/error.hpp"

namespace foretrain {

double median(std::vector<double> values) {
  if (values.empty()) throw InternalError("median of no values");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2.0;
}

double mean(const std::vector<double>& values) {
  if (values.empty()) throw InternalError("mean of no values");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) throw InternalError("quantile of no values");
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

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

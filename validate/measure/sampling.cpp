#include "validate/measure/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/base/statistics.hpp"
#include "validate/measure/clock.hpp"
#include "validate/measure/signals.hpp"

namespace foretrain {

double Sampled::median() const { return foretrain::median(values); }

double Sampled::lowest() const { return *std::ranges::min_element(values); }

double Sampled::spread() const {
  const double middle = median();
  return middle == 0.0 ? 0.0 : (quantile(values, 0.75) - quantile(values, 0.25)) / middle;
}

double median_uncertainty(std::vector<double> values) {
  const auto n = static_cast<double>(values.size());
  const auto below = static_cast<std::ptrdiff_t>(std::floor(n / 2.0 - 0.98 * std::sqrt(n)));
  if (below < 0 || n < 6.0) return std::numeric_limits<double>::infinity();
  std::sort(values.begin(), values.end());
  const auto first = static_cast<std::size_t>(below);
  return (values[values.size() - 1 - first] - values[first]) / 2.0 / median(values);
}

Sampled sample(const std::function<double()>& once, const StoppingRule& rule) {
  Sampled samples;
  const double end = now() + rule.budget.value();
  for (int i = 0; i < rule.warm_up; ++i) {
    throw_if_interrupted();
    once();
  }
  for (int i = 0; i < rule.most; ++i) {
    throw_if_interrupted();
    samples.values.push_back(once());
    if (i + 1 < rule.least) continue;
    if (now() >= end || median_uncertainty(samples.values) <= rule.target) break;
  }
  return samples;
}

}  // namespace foretrain

// Distribution of a length over samples, as weighted values: results are exact for a histogram,
// and a quadrature for a density. No random numbers.
#pragma once

#include <algorithm>
#include <vector>

namespace foretrain {

/// A length (or a count) and how probable it is.
struct WeightedValue {
  double value = 0.0;
  double weight = 1.0;
  bool operator==(const WeightedValue&) const = default;
};

/// Length distribution of a scenario.
struct LengthDistribution {
  enum class Kind { fixed, uniform, lognormal, histogram };
  Kind kind = Kind::fixed;
  double value = 0.0;                    ///< fixed
  double from = 0.0, to = 0.0;           ///< uniform
  double mean = 0.0, spread = 0.0;       ///< lognormal: spread is the standard deviation as a share of the mean
  std::vector<WeightedValue> histogram;  ///< weights of any sum
  bool operator==(const LengthDistribution&) const = default;
};

/// The distribution as values in ascending order with weights that add up to 1; its mean is exact. A density is cut
/// into `density_cells` values: equal steps of a uniform one, equal steps of the normal variable behind a lognormal one
/// (out to 5 standard deviations).
std::vector<WeightedValue> values_of(const LengthDistribution& distribution);
inline constexpr int density_cells = 200;

/// The same rounded to whole numbers (images), with the mean kept by dividing each value between its two neighbours.
std::vector<WeightedValue> whole_values_of(const LengthDistribution& distribution);

/// Weights divided by their sum, values ascending, equal ones joined.
std::vector<WeightedValue> normalised(std::vector<WeightedValue> values);

/// E[value^power], for weights that add up to 1.
double moment(const std::vector<WeightedValue>& values, int power);

/// E[max^power] of `count` independent draws: value i is the largest with probability Cᵢⁿ − Cᵢ₋₁ⁿ, C the sum of the
/// weights up to it. Values must be normalised.
double largest_moment(const std::vector<WeightedValue>& values, double count, int power = 1);

/// The values between two quantiles, all weights adding up to 1, their own divided by their sum; a value that straddles
/// an end is divided. 0 ≤ from < to ≤ 1.
template <typename Weighted>
std::vector<Weighted> between_quantiles(const std::vector<Weighted>& values, double from, double to) {
  std::vector<Weighted> part;
  double begin = 0.0, total = 0.0;
  for (const Weighted& value : values) {
    const double end = begin + value.weight;
    const double inside = std::min(end, to) - std::max(begin, from);
    if (inside > 1e-12) {
      part.push_back(value);
      part.back().weight = inside;
      total += inside;
    }
    begin = end;
  }
  for (Weighted& value : part) value.weight /= total;
  return part;
}

}  // namespace foretrain

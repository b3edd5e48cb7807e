// The standard normal distribution.
#pragma once

namespace foretrain {

/// Probability that a standard normal variable is at most z.
double normal_cumulative(double z);

/// The z that a standard normal variable stays below with this probability (above 0, below 1): to ten digits.
double normal_quantile(double probability);

}  // namespace foretrain
